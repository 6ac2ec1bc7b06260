"""Customers and tokens."""

import uuid

import stripe
from support import CARD, Case, customer, ids, v1

ADDRESS = {"line1": "1 Main St", "city": "Springfield", "country": "US", "postal_code": "12345"}


class Customers(Case):
    def test_a_customer_is_what_it_was_made_of(self):
        made = customer(
            name="Ada Lovelace",
            email="ada@example.com",
            description="the first",
            phone="+15550100",
            address=ADDRESS,
            shipping={"name": "Ada", "address": ADDRESS},
            preferred_locales=["en", "fr"],
            metadata={"order": "1001", "a b": "c&d=é"},
        )
        self.holds(made.id.startswith("cus_"))
        self.equal((made.object, made.livemode), ("customer", False))
        found = v1.customers.retrieve(made.id)
        self.equal(found.to_dict(), made.to_dict())
        self.equal((found.name, found.email), ("Ada Lovelace", "ada@example.com"))
        self.equal(found.address.city, "Springfield")
        self.equal(found.shipping.address.postal_code, "12345")
        self.equal(found.preferred_locales, ["en", "fr"])
        self.equal(found.metadata.to_dict(), {"order": "1001", "a b": "c&d=é"})

    def test_an_update_changes_what_it_names_and_empty_unsets(self):
        made = customer(name="Ada", description="kept", metadata={"a": "1", "b": "2"})
        changed = v1.customers.update(made.id, params={"name": "", "metadata": {"b": "", "c": "3"}})
        self.equal(changed.name, None)
        self.equal(changed.description, "kept")
        self.equal(changed.metadata.to_dict(), {"a": "1", "c": "3"})
        self.equal(v1.customers.update(made.id, params={"metadata": ""}).metadata.to_dict(), {})

    def test_a_deleted_customer_is_shown_as_deleted_and_cannot_be_used(self):
        made = customer()
        gone = v1.customers.delete(made.id)
        self.equal((gone.id, gone.deleted), (made.id, True))
        self.equal(v1.customers.retrieve(made.id).deleted, True)
        invalid = stripe.InvalidRequestError
        missing = (invalid, 404, "resource_missing", "id")
        self.refused(*missing, v1.customers.update, made.id, params={"name": "x"})
        self.refused(*missing, v1.customers.delete, made.id)
        self.refused(
            invalid, 400, "resource_missing", "customer",
            v1.payment_intents.create, params={"amount": 100, "currency": "usd", "customer": made.id},
        )

    def test_customers_are_found_by_email(self):
        address = f"only.one+{uuid.uuid4()}@example.com"
        made = customer(email=address)
        customer(email="another@example.com")
        found = v1.customers.list(params={"email": address})
        self.equal(ids(found.data), [made.id])

    def test_the_older_way_of_the_sdk_works_too(self):
        made = stripe.Customer.create(name="Old", metadata={"way": "old"})
        made = stripe.Customer.modify(made.id, name="Older", metadata={"way": ""})
        self.equal((made.name, made.metadata.to_dict()), ("Older", {}))
        self.equal(stripe.Customer.retrieve(made.id).name, "Older")
        self.holds(stripe.Customer.list(limit=1).data[0].id)
        self.equal(made.delete().deleted, True)


class Tokens(Case):
    def test_a_token_holds_a_card_and_is_spent_once(self):
        token = v1.tokens.create(params={"card": CARD})
        self.equal((token.object, token.type, token.used), ("token", "card", False))
        self.equal((token.card.brand, token.card.last4, token.card.exp_year), ("Visa", "4242", 2044))
        v1.charges.create(params={"amount": 1000, "currency": "usd", "source": token.id})
        self.equal(v1.tokens.retrieve(token.id).used, True)
        with self.assertRaises(stripe.InvalidRequestError) as caught:
            v1.charges.create(params={"amount": 1000, "currency": "usd", "source": token.id})
        self.equal(caught.exception.code, "token_already_used")

    def test_a_customer_keeps_the_card_of_a_token_as_its_default_source(self):
        made = customer(source="tok_mastercard")
        self.holds(made.default_source.startswith("card_"))
        charge = v1.charges.create(params={"amount": 700, "currency": "eur", "customer": made.id})
        self.equal((charge.customer, charge.paid), (made.id, True))
        self.equal(charge.payment_method_details.card.brand, "mastercard")
