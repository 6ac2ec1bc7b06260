"""Events: what happened, in order, and how they are filtered."""

import uuid

from support import Case, charge, customer, ids, intent, paid, v1


def story(thing, **filters):
    """The types of the events about one object, the oldest first."""
    events = v1.events.list(params={"limit": 100, **filters}).auto_paging_iter()
    return [event.type for event in events if event.data.object.id == thing.id][::-1]


class Events(Case):
    def test_the_events_of_a_customer_tell_its_life(self):
        made = customer(name="Ada")
        v1.customers.update(made.id, params={"name": "Bea"})
        v1.customers.delete(made.id)
        self.equal(story(made), ["customer.created", "customer.updated", "customer.deleted"])

    def test_the_events_of_a_payment_tell_its_life(self):
        made = paid(capture_method="manual")
        v1.payment_intents.capture(made.id)
        self.equal(
            story(made, type="payment_intent.*"),
            [
                "payment_intent.created",
                "payment_intent.amount_capturable_updated",
                "payment_intent.succeeded",
            ],
        )
        gone = intent()
        v1.payment_intents.cancel(gone.id)
        self.equal(story(gone), ["payment_intent.created", "payment_intent.canceled"])

    def test_an_event_is_a_snapshot_and_names_its_request(self):
        key = str(uuid.uuid4())
        made = v1.charges.create(
            params={"amount": 1000, "currency": "usd", "source": "tok_visa", "description": "then"},
            options={"idempotency_key": key},
        )
        v1.charges.update(made.id, params={"description": "now"})
        event = next(
            event for event in v1.events.list(params={"type": "charge.succeeded"}).auto_paging_iter()
            if event.data.object.id == made.id
        )
        self.equal(event.data.object.description, "then")
        self.equal(event.request.idempotency_key, key)
        self.equal(event.request.id, made.last_response.request_id)
        self.equal(v1.events.retrieve(event.id).to_dict(), event.to_dict())

    def test_events_are_filtered_by_types(self):
        made = charge()
        refund = v1.refunds.create(params={"charge": made.id})
        types = ["charge.refunded", "refund.created"]
        found = v1.events.list(params={"types": types, "limit": 2}).data
        self.equal(sorted(event.type for event in found), types)
        self.holds(refund.id in ids(event.data.object for event in found))
        self.equal(v1.events.list(params={"type": "customer.subscription.created"}).data, [])
        delivered = v1.events.list(params={"types": types, "limit": 2, "delivery_success": True}).data
        self.equal(ids(delivered), ids(found))
        self.equal(v1.events.list(params={"delivery_success": False}).data, [])
