"""What the tests of the SDK share: a client, and checks that are counted."""

import os
import unittest

import stripe

BASE_URL = os.environ["ONCEPAY_URL"]
API_KEY = os.environ["ONCEPAY_KEY"]

client = stripe.StripeClient(API_KEY, base_addresses={"api": BASE_URL})
v1 = client.v1

# The older way of the same SDK, which most code in the world is written in.
stripe.api_base = BASE_URL
stripe.api_key = API_KEY

CARD = {"number": "4242424242424242", "exp_month": 12, "exp_year": 2044, "cvc": "123"}


class Case(unittest.TestCase):
    """A test whose checks are counted, so that a suite that checks less than it should is noticed."""

    checks = 0

    def equal(self, found, expected):
        Case.checks += 1
        self.assertEqual(found, expected)

    def holds(self, condition, what=None):
        Case.checks += 1
        self.assertTrue(condition, what)

    def refused(self, kind, status, code, param, call, *arguments, **options):
        """That the call raises exactly this class, with this status, code and param; gives the error."""
        with self.assertRaises(stripe.StripeError) as caught:
            call(*arguments, **options)
        error = caught.exception
        self.equal((type(error), error.http_status, error.code), (kind, status, code))
        self.equal(error.param if hasattr(error, "param") else error.error.param, param)
        return error


def customer(**params):
    return v1.customers.create(params=params)


def charge(**params):
    return v1.charges.create(params={"amount": 1000, "currency": "usd", "source": "tok_visa", **params})


def intent(**params):
    return v1.payment_intents.create(params={"amount": 1000, "currency": "usd", **params})


def paid(**params):
    """A payment intent that is confirmed as it is made."""
    return intent(**{"payment_method": "pm_card_visa", "confirm": True, **params})


def ids(objects):
    return [thing.id for thing in objects]
