"""Charges, refunds, the balance and its transactions."""

import stripe
from support import CARD, Case, charge, customer, ids, paid, v1


class Charges(Case):
    def test_a_charge_is_made_shown_and_changed(self):
        made = charge(description="a pen", metadata={"a": "1"}, receipt_email="ada@example.com")
        self.equal((made.object, made.status, made.paid, made.captured), ("charge", "succeeded", True, True))
        self.equal((made.amount, made.currency, made.refunded), (1000, "usd", False))
        self.equal(made.payment_method_details.card.last4, "4242")
        self.equal(v1.charges.retrieve(made.id).to_dict(), made.to_dict())
        changed = v1.charges.update(made.id, params={"description": "a pencil", "metadata": {"b": "2"}})
        self.equal((changed.description, changed.metadata.to_dict()), ("a pencil", {"a": "1", "b": "2"}))

    def test_a_raw_card_can_be_charged(self):
        self.equal(charge(source={"object": "card", **CARD}).status, "succeeded")

    def test_a_charge_is_authorised_and_captured_once(self):
        held = charge(capture=False)
        self.equal((held.status, held.captured), ("succeeded", False))
        done = v1.charges.capture(held.id, params={"amount": 600})
        self.equal((done.captured, done.amount_captured, done.amount_refunded), (True, 600, 400))
        self.refused(
            stripe.InvalidRequestError, 400, "charge_already_captured", None, v1.charges.capture, held.id
        )

    def test_a_declined_charge_is_a_card_error_that_names_the_failed_charge(self):
        with self.assertRaises(stripe.CardError) as caught:
            charge(source="tok_chargeDeclinedInsufficientFunds")
        error = caught.exception
        self.equal((error.code, error.error.decline_code), ("card_declined", "insufficient_funds"))
        failed = v1.charges.retrieve(error.error.charge)
        self.equal((failed.status, failed.paid, failed.failure_code), ("failed", False, "card_declined"))
        self.equal(failed.outcome.type, "issuer_declined")

    def test_amounts_of_every_kind_of_currency_are_in_the_minor_unit(self):
        yen = charge(amount=50, currency="JPY")
        self.equal((yen.amount, yen.currency), (50, "jpy"))
        self.equal(charge(amount=5000, currency="kwd").currency, "kwd")


class Refunds(Case):
    def test_a_charge_is_refunded_in_part_and_then_the_rest(self):
        made = charge()
        first = v1.refunds.create(
            params={"charge": made.id, "amount": 300, "reason": "duplicate", "metadata": {"k": "v"}}
        )
        self.equal((first.object, first.status, first.amount), ("refund", "succeeded", 300))
        self.equal((first.charge, first.reason), (made.id, "duplicate"))
        rest = v1.refunds.create(params={"charge": made.id})
        self.equal(rest.amount, 700)
        refunded = v1.charges.retrieve(made.id)
        self.equal((refunded.amount_refunded, refunded.refunded), (1000, True))
        self.equal(ids(v1.refunds.list(params={"charge": made.id}).data), [rest.id, first.id])
        self.refused(
            stripe.InvalidRequestError, 400, "charge_already_refunded", None,
            v1.refunds.create, params={"charge": made.id},
        )
        changed = v1.refunds.update(first.id, params={"metadata": {"k": "", "l": "w"}})
        self.equal(changed.metadata.to_dict(), {"l": "w"})
        self.equal(v1.refunds.retrieve(first.id).to_dict(), changed.to_dict())

    def test_a_payment_is_refunded_by_its_intent(self):
        made = paid(customer=customer().id)
        refund = v1.refunds.create(params={"payment_intent": made.id})
        self.equal((refund.payment_intent, refund.charge), (made.id, made.latest_charge))
        self.equal(ids(v1.refunds.list(params={"payment_intent": made.id}).data), [refund.id])

    def test_no_more_is_refunded_than_there_is(self):
        made = charge()
        error = self.refused(
            stripe.InvalidRequestError, 400, None, "amount",
            v1.refunds.create, params={"charge": made.id, "amount": 1001},
        )
        self.holds("10.01" in error.user_message and "10.00" in error.user_message, error.user_message)
        held = charge(capture=False)
        with self.assertRaises(stripe.InvalidRequestError):
            v1.refunds.create(params={"charge": held.id, "amount": 999})
        self.equal(v1.charges.retrieve(made.id).amount_refunded, 0)

    def test_a_refund_of_the_whole_of_a_hold_releases_it(self):
        held = charge(capture=False)
        refund = v1.refunds.create(params={"charge": held.id})
        self.equal((refund.status, refund.amount, refund.balance_transaction), ("succeeded", 1000, None))
        released = v1.charges.retrieve(held.id)
        self.equal((released.captured, released.refunded, released.amount_refunded), (False, True, 1000))

    def test_the_refunds_within_a_charge_page_on_by_their_url(self):
        made = charge()
        refunds = [v1.refunds.create(params={"charge": made.id, "amount": 10}).id for _ in range(12)]
        expanded = v1.charges.retrieve(made.id, params={"expand": ["refunds"]})
        self.equal(len(expanded.refunds.data), 10)
        self.equal(ids(expanded.refunds.auto_paging_iter()), refunds[::-1])


class Account(Case):
    def test_the_account_of_the_key_is_read_with_and_without_its_id(self):
        account = v1.accounts.retrieve_current()
        self.equal((account.object, account.charges_enabled), ("account", True))
        self.equal(v1.accounts.retrieve(account.id).to_dict(), account.to_dict())
        self.equal(stripe.Account.retrieve().id, account.id)


class Ledger(Case):
    def test_the_balance_moves_with_charges_and_refunds_and_each_has_its_transaction(self):
        def available(currency):
            amounts = v1.balance.retrieve().available
            return sum(one.amount for one in amounts if one.currency == currency)

        before = available("nok")
        made = charge(amount=2000, currency="nok")
        refund = v1.refunds.create(params={"charge": made.id, "amount": 500})
        self.equal(available("nok") - before, 1500)
        self.equal(v1.balance.retrieve().object, "balance")
        incoming = v1.balance_transactions.retrieve(made.balance_transaction)
        self.equal((incoming.amount, incoming.fee, incoming.net), (2000, 0, 2000))
        self.equal((incoming.type, incoming.source), ("charge", made.id))
        outgoing = v1.balance_transactions.list(params={"source": refund.id}).data
        self.equal([(one.id, one.amount, one.type) for one in outgoing],
                   [(refund.balance_transaction, -500, "refund")])
        of_currency = v1.balance_transactions.list(params={"currency": "nok", "type": "refund"}).data
        self.holds(outgoing[0].id in ids(of_currency))
