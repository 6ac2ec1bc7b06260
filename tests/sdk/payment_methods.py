"""Payment methods."""

import stripe
from support import CARD, Case, customer, ids, v1


def method(**params):
    return v1.payment_methods.create(params={"type": "card", "card": CARD, **params})


class PaymentMethods(Case):
    def test_a_raw_test_card_becomes_a_payment_method(self):
        made = method(billing_details={"name": "Ada", "email": "ada@example.com"}, metadata={"k": "v"})
        self.holds(made.id.startswith("pm_"))
        self.equal((made.type, made.card.brand, made.card.last4), ("card", "visa", "4242"))
        self.equal((made.billing_details.name, made.customer), ("Ada", None))
        self.equal(v1.payment_methods.retrieve(made.id).to_dict(), made.to_dict())

    def test_the_same_number_has_the_same_fingerprint_however_it_came(self):
        by_token = method(card={"token": "tok_visa"})
        self.equal(by_token.card.fingerprint, method().card.fingerprint)
        self.holds(by_token.card.fingerprint != method(card={"token": "tok_amex"}).card.fingerprint)

    def test_an_update_changes_holder_expiry_and_metadata(self):
        kept = v1.payment_methods.attach(method().id, params={"customer": customer().id})
        changed = v1.payment_methods.update(
            kept.id,
            params={
                "billing_details": {"address": {"city": "Oslo"}},
                "card": {"exp_month": 1, "exp_year": 2045},
                "metadata": {"a": "1"},
            },
        )
        self.equal(changed.billing_details.address.city, "Oslo")
        self.equal((changed.card.exp_month, changed.card.exp_year), (1, 2045))
        self.equal(changed.metadata.to_dict(), {"a": "1"})

    def test_a_customer_keeps_lists_and_gives_up_its_payment_methods(self):
        owner = customer()
        first = v1.payment_methods.attach("pm_card_visa", params={"customer": owner.id})
        second = v1.payment_methods.attach(method().id, params={"customer": owner.id})
        self.equal((first.customer, second.customer), (owner.id, owner.id))
        both = [second.id, first.id]
        self.equal(ids(v1.payment_methods.list(params={"customer": owner.id, "type": "card"}).data), both)
        self.equal(ids(v1.customers.payment_methods.list(owner.id).data), both)
        self.equal(v1.customers.payment_methods.retrieve(owner.id, first.id).id, first.id)
        self.equal(v1.payment_methods.detach(first.id).customer, None)
        self.equal(ids(v1.customers.payment_methods.list(owner.id).data), [second.id])
        self.refused(
            stripe.InvalidRequestError, 404, "resource_missing", "id",
            v1.customers.payment_methods.retrieve, owner.id, first.id,
        )
        with self.assertRaises(stripe.InvalidRequestError):
            v1.payment_methods.attach(first.id, params={"customer": owner.id})
        with self.assertRaises(stripe.InvalidRequestError):
            v1.payment_methods.detach(first.id)

    def test_a_default_payment_method_is_kept_and_forgotten_with_the_method(self):
        owner = customer(payment_method="pm_card_visa")
        kept = v1.customers.payment_methods.list(owner.id).data[0]
        settings = {"invoice_settings": {"default_payment_method": kept.id}}
        changed = v1.customers.update(owner.id, params=settings)
        self.equal(changed.invoice_settings.default_payment_method, kept.id)
        v1.payment_methods.detach(kept.id)
        self.equal(v1.customers.retrieve(owner.id).invoice_settings.default_payment_method, None)

    def test_a_card_that_always_declines_cannot_be_kept_but_for_one(self):
        owner = customer()
        error = self.refused(
            stripe.CardError, 402, "card_declined", None,
            v1.payment_methods.attach, "pm_card_chargeDeclined", params={"customer": owner.id},
        )
        self.equal(error.error.decline_code, "generic_decline")
        kept = v1.payment_methods.attach("pm_card_chargeCustomerFail", params={"customer": owner.id})
        self.equal(kept.customer, owner.id)
