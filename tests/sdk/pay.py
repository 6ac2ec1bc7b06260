"""A shop's day over a bad line: five requests that move money, and what the SDK made of each, as JSON.

ONCEPAY_RETRIES is the SDK's own setting. With ONCEPAY_INSISTS the caller chooses the keys and, when the SDK gives up,
calls again with the same key, as callers should.
"""

import json
import os
import uuid

import stripe

client = stripe.StripeClient(
    os.environ["ONCEPAY_KEY"],
    base_addresses={"api": os.environ["ONCEPAY_URL"]},
    max_network_retries=int(os.environ.get("ONCEPAY_RETRIES", "2")),
)
insists = "ONCEPAY_INSISTS" in os.environ
given_up = 0


def call(function, *arguments, **params):
    global given_up
    options = {"idempotency_key": str(uuid.uuid4())} if insists else {}
    while True:
        try:
            return function(*arguments, params=params, options=options)
        except stripe.APIConnectionError:
            if not insists:
                raise
            given_up += 1


def pay(amount, payment_method, **params):
    create = client.v1.payment_intents.create
    return call(create, amount=amount, currency="usd", payment_method=payment_method, confirm=True, **params)


paid = pay(1000, "pm_card_visa")
try:
    pay(2000, "pm_card_chargeDeclined")
    decline = None
except stripe.CardError as error:
    decline = error.error.decline_code
refund = call(client.v1.refunds.create, payment_intent=paid.id, amount=400)
held = pay(700, "pm_card_visa", capture_method="manual")
captured = call(client.v1.payment_intents.capture, held.id)

print(
    json.dumps(
        {
            "statuses": [paid.status, decline, refund.status, held.status, captured.status],
            "payment": paid.id,
            "given_up": given_up,
        }
    )
)
