"""Takes one delivery as a receiver does, prints the id of its event, and takes nothing that is not it."""

import os

import stripe

body, signature, secret = os.environ["BODY"].encode(), os.environ["SIGNATURE"], os.environ["SECRET"]


def refused(*arguments):
    try:
        stripe.Webhook.construct_event(*arguments)
    except stripe.SignatureVerificationError:
        return True
    return False


event = stripe.Webhook.construct_event(body, signature, secret)
assert refused(body + b" ", signature, secret)
assert refused(body, signature, secret + "0")
assert refused(body, signature.replace("t=", "t=1"), secret)
assert event.object == "event" and event.data.object.object == event.type.split(".")[0]
print(event.id)
