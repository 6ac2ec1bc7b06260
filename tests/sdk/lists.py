"""Lists in both directions, filters by time, and expansion."""

import stripe
from support import Case, charge, customer, ids, paid, v1


class Lists(Case):
    def test_pages_go_forwards_and_backwards_and_meet_every_object_once(self):
        owner = customer(source="tok_visa")
        made = [charge(customer=owner.id, source=None).id for _ in range(7)]
        newest_first = made[::-1]
        mine = {"customer": owner.id}
        page = v1.charges.list(params={**mine, "limit": 3})
        self.equal((page.object, page.url, page.has_more), ("list", "/v1/charges", True))
        self.equal(ids(page.data), newest_first[:3])
        self.equal(ids(page.auto_paging_iter()), newest_first)
        second = page.next_page()
        self.equal(ids(second.data), newest_first[3:6])
        last = second.next_page()
        self.equal((ids(last.data), last.has_more), (newest_first[6:], False))
        self.equal(page.previous_page().data, [])
        before = v1.charges.list(params={**mine, "limit": 2, "ending_before": made[0]})
        self.equal((ids(before.data), before.has_more), ([made[2], made[1]], True))
        # The SDK turns each page of this direction round: what comes out is the oldest first.
        self.equal(ids(before.auto_paging_iter()), made[1:])
        self.equal(ids(v1.charges.list(params={**mine, "limit": 100}).data), newest_first)

    def test_auto_paging_works_in_the_older_way_too(self):
        owner = customer()
        made = [paid(customer=owner.id).id for _ in range(3)]
        listed = stripe.PaymentIntent.list(customer=owner.id, limit=1)
        self.equal(ids(listed.auto_paging_iter()), made[::-1])
        listed = stripe.PaymentIntent.list(customer=owner.id, limit=1, ending_before=made[0])
        self.equal(ids(listed.auto_paging_iter()), made[1:])

    def test_lists_are_filtered_by_when_things_were_made(self):
        owner = customer(source="tok_visa")
        made = charge(customer=owner.id, source=None)

        def found(created):
            return ids(v1.charges.list(params={"customer": owner.id, "created": created}).data)

        self.equal(found(made.created), [made.id])
        self.equal(found({"gte": made.created, "lte": made.created}), [made.id])
        self.equal(found({"gt": made.created - 1, "lt": made.created + 1}), [made.id])
        self.equal(found({"gt": made.created}), [])
        self.equal(found({"lt": made.created}), [])

    def test_a_list_of_nothing_is_empty(self):
        page = v1.payment_intents.list(params={"customer": customer().id})
        self.equal((page.data, page.has_more), ([], False))
        self.equal(list(page.auto_paging_iter()), [])


class Expansion(Case):
    def test_an_object_is_expanded_when_it_is_made_and_when_it_is_found(self):
        owner = customer(name="Ada")
        made = paid(customer=owner.id, expand=["customer", "payment_method"])
        self.equal(made.customer.name, "Ada")
        self.equal(made.payment_method.card.last4, "4242")
        found = v1.payment_intents.retrieve(
            made.id, params={"expand": ["latest_charge.balance_transaction.source", "latest_charge.customer"]}
        )
        self.equal(found.latest_charge.balance_transaction.net, 1000)
        self.equal(found.latest_charge.balance_transaction.source.id, found.latest_charge.id)
        self.equal(found.latest_charge.customer.id, owner.id)
        self.equal(found.customer, owner.id)

    def test_the_objects_of_a_list_are_expanded(self):
        owner = customer(source="tok_visa")
        charge(customer=owner.id, source=None)
        expand = ["data.customer.default_source", "data.balance_transaction"]
        found = v1.charges.list(params={"customer": owner.id, "expand": expand}).data[0]
        self.equal(found.customer.default_source.last4, "4242")
        self.equal(found.balance_transaction.amount, 1000)

    def test_a_refund_leads_back_to_its_payment(self):
        made = paid()
        refund = v1.refunds.create(
            params={"payment_intent": made.id, "expand": ["charge", "payment_intent.latest_charge"]}
        )
        self.equal((refund.charge.amount_refunded, refund.charge.refunded), (1000, True))
        self.equal(refund.payment_intent.latest_charge.id, refund.charge.id)

    def test_what_cannot_be_expanded_is_refused(self):
        made = charge()
        for path in ["amount", "customer.nothing", "balance_transaction.source.customer.default_source.customer"]:
            with self.assertRaises(stripe.InvalidRequestError) as caught:
                v1.charges.retrieve(made.id, params={"expand": [path]})
            self.equal((caught.exception.http_status, caught.exception.param), (400, "expand[0]"))
