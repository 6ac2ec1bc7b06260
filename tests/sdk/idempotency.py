"""Keys: the same one is the same object, and another request with it is refused."""

import uuid

import stripe
from support import Case, charge, v1

BOOK = {"amount": 1200, "currency": "usd", "payment_method": "pm_card_visa", "confirm": True}


class Idempotency(Case):
    def test_the_same_key_is_the_same_object(self):
        options = {"idempotency_key": str(uuid.uuid4())}
        first = v1.payment_intents.create(params=BOOK, options=options)
        again = v1.payment_intents.create(params=BOOK, options=options)
        self.equal(again.to_dict(), first.to_dict())
        self.equal(again.last_response.body, first.last_response.body)
        self.equal(first.last_response.headers.get("idempotent-replayed"), None)
        self.equal(again.last_response.headers["idempotent-replayed"], "true")
        self.equal(again.last_response.headers["original-request"], first.last_response.request_id)
        self.holds(again.last_response.request_id != first.last_response.request_id)
        self.equal(len(v1.charges.list(params={"payment_intent": first.id}).data), 1)

    def test_another_key_is_another_object(self):
        first, second = v1.payment_intents.create(params=BOOK), v1.payment_intents.create(params=BOOK)
        self.holds(first.id != second.id)

    def test_a_reused_key_is_an_idempotency_error(self):
        options = {"idempotency_key": str(uuid.uuid4())}
        v1.customers.create(params={"name": "Ada"}, options=options)
        with self.assertRaises(stripe.IdempotencyError) as caught:
            v1.customers.create(params={"name": "Bea"}, options=options)
        self.equal((caught.exception.http_status, caught.exception.error.code), (400, "idempotency_key_reused"))
        with self.assertRaises(stripe.IdempotencyError):
            v1.payment_intents.create(params=BOOK, options=options)

    def test_a_decline_is_remembered_and_a_wrong_request_is_not(self):
        options = {"idempotency_key": str(uuid.uuid4())}
        declined = {**BOOK, "payment_method": "pm_card_chargeDeclined"}
        charges = []
        for _ in range(2):
            with self.assertRaises(stripe.CardError) as caught:
                v1.payment_intents.create(params=declined, options=options)
            charges.append(caught.exception.error.charge)
        self.equal(charges[0], charges[1])
        self.equal(caught.exception.headers["idempotent-replayed"], "true")
        options = {"idempotency_key": str(uuid.uuid4())}
        with self.assertRaises(stripe.InvalidRequestError):
            v1.payment_intents.create(params={**BOOK, "amount": 1}, options=options)
        self.equal(v1.payment_intents.create(params=BOOK, options=options).status, "succeeded")

    def test_an_answer_has_the_headers_that_sdks_read(self):
        key = str(uuid.uuid4())
        made = v1.customers.create(options={"idempotency_key": key})
        answer = made.last_response
        self.equal((answer.code, answer.idempotency_key), (201, key))
        self.holds(answer.request_id.startswith("req_"))
        self.equal(answer.headers["stripe-version"], stripe.api_version)
        self.equal(answer.headers["location"], f"/v1/customers/{made.id}")
        self.equal(answer.headers["content-type"], "application/json")
        self.equal(answer.headers["cache-control"], "no-store")

    def test_a_refund_with_the_same_key_moves_money_once(self):
        made = charge()
        options = {"idempotency_key": str(uuid.uuid4())}
        refunds = [
            v1.refunds.create(params={"charge": made.id, "amount": 100}, options=options) for _ in range(3)
        ]
        self.equal(len({refund.id for refund in refunds}), 1)
        self.equal(v1.charges.retrieve(made.id).amount_refunded, 100)
