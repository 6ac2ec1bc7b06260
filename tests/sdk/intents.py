"""Payment intents: the whole life, as an SDK sees it."""

import stripe
from support import CARD, Case, customer, ids, intent, paid, v1

WRONG_STATE = (stripe.InvalidRequestError, 400, "payment_intent_unexpected_state", None)


class Paying(Case):
    def test_a_payment_is_created_given_a_card_confirmed_and_paid(self):
        made = intent(description="a book", metadata={"order": "7"})
        self.equal((made.status, made.amount, made.amount_received), ("requires_payment_method", 1000, 0))
        self.holds(made.client_secret.startswith(made.id + "_secret_"))
        made = v1.payment_intents.update(made.id, params={"payment_method": "pm_card_visa", "amount": 1500})
        self.equal(made.status, "requires_confirmation")
        made = v1.payment_intents.confirm(made.id)
        self.equal((made.status, made.amount_received), ("succeeded", 1500))
        charge = v1.charges.retrieve(made.latest_charge)
        self.equal((charge.payment_intent, charge.amount_captured), (made.id, 1500))
        self.equal((charge.description, charge.metadata.to_dict()), ("a book", {"order": "7"}))
        self.equal(v1.payment_intents.retrieve(made.id).to_dict(), made.to_dict())

    def test_one_call_creates_and_confirms(self):
        made = paid(automatic_payment_methods={"enabled": True, "allow_redirects": "never"})
        self.equal(made.status, "succeeded")
        self.equal(made.automatic_payment_methods.allow_redirects, "never")

    def test_a_card_can_come_along_as_payment_method_data(self):
        made = paid(payment_method=None, payment_method_data={"type": "card", "card": CARD})
        self.equal(made.status, "succeeded")
        self.holds(made.payment_method.startswith("pm_"))

    def test_a_decline_is_a_card_error_with_the_intent_and_another_card_pays(self):
        made = intent()
        error = self.refused(
            stripe.CardError, 402, "card_declined", None,
            v1.payment_intents.confirm, made.id,
            params={"payment_method": "pm_card_visa_chargeDeclinedInsufficientFunds"},
        )
        self.equal(error.error.decline_code, "insufficient_funds")
        self.equal(error.user_message, "Your card has insufficient funds.")
        self.equal(error.error.payment_intent.id, made.id)
        self.equal(error.error.payment_intent.status, "requires_payment_method")
        self.equal(error.error.payment_method.card.last4, "9995")
        self.equal(v1.charges.retrieve(error.error.charge).status, "failed")
        declined = v1.payment_intents.retrieve(made.id)
        self.equal(declined.last_payment_error.decline_code, "insufficient_funds")
        self.equal((declined.payment_method, declined.latest_charge), (None, error.error.charge))
        settled = v1.payment_intents.confirm(made.id, params={"payment_method": "pm_card_mastercard"})
        self.equal((settled.status, settled.last_payment_error), ("succeeded", None))
        charges = v1.charges.list(params={"payment_intent": made.id}).data
        self.equal([charge.status for charge in charges], ["succeeded", "failed"])

    def test_every_declining_card_has_its_code(self):
        declines = {
            "chargeDeclined": ("card_declined", "generic_decline"),
            "chargeDeclinedLostCard": ("card_declined", "lost_card"),
            "chargeDeclinedStolenCard": ("card_declined", "stolen_card"),
            "chargeDeclinedVelocityLimitExceeded": ("card_declined", "card_velocity_exceeded"),
            "chargeDeclinedExpiredCard": ("expired_card", "expired_card"),
            "chargeDeclinedIncorrectCvc": ("incorrect_cvc", "incorrect_cvc"),
            "chargeDeclinedProcessingError": ("processing_error", "processing_error"),
        }
        for name, expected in declines.items():
            with self.assertRaises(stripe.CardError) as caught:
                paid(payment_method=f"pm_card_{name}")
            self.equal((caught.exception.code, caught.exception.error.decline_code), expected)

    def test_intents_are_listed_by_customer(self):
        owner = customer()
        first, second = intent(customer=owner.id), paid(customer=owner.id)
        self.equal(ids(v1.payment_intents.list(params={"customer": owner.id}).data), [second.id, first.id])


class Holding(Case):
    def hold(self):
        held = paid(capture_method="manual")
        self.equal((held.status, held.amount_capturable), ("requires_capture", 1000))
        return held

    def test_what_is_held_can_be_captured_whole(self):
        done = v1.payment_intents.capture(self.hold().id)
        self.equal((done.status, done.amount_received, done.amount_capturable), ("succeeded", 1000, 0))

    def test_what_is_held_can_be_captured_in_part_and_the_rest_is_released(self):
        done = v1.payment_intents.capture(self.hold().id, params={"amount_to_capture": 400})
        self.equal((done.status, done.amount_received, done.amount_capturable), ("succeeded", 400, 0))
        charge = v1.charges.retrieve(done.latest_charge)
        self.equal((charge.amount, charge.amount_captured, charge.amount_refunded), (1000, 400, 600))
        error = self.refused(*WRONG_STATE, v1.payment_intents.capture, done.id)
        self.equal(error.error.payment_intent.status, "succeeded")

    def test_what_is_held_can_be_let_go(self):
        held = self.hold()
        gone = v1.payment_intents.cancel(held.id, params={"cancellation_reason": "duplicate"})
        self.equal((gone.status, gone.cancellation_reason), ("canceled", "duplicate"))
        self.holds(gone.canceled_at >= gone.created)
        self.refused(*WRONG_STATE, v1.payment_intents.capture, held.id)
        self.refused(*WRONG_STATE, v1.payment_intents.confirm, held.id)
        self.refused(*WRONG_STATE, v1.payment_intents.cancel, held.id)

    def test_no_more_is_captured_than_is_held_and_only_by_the_intent(self):
        held = self.hold()
        with self.assertRaises(stripe.InvalidRequestError) as caught:
            v1.payment_intents.capture(held.id, params={"amount_to_capture": 1001})
        self.equal((caught.exception.param, caught.exception.http_status), ("amount_to_capture", 400))
        with self.assertRaises(stripe.InvalidRequestError) as caught:
            v1.charges.capture(held.latest_charge)
        self.equal(caught.exception.http_status, 400)
        self.equal(v1.payment_intents.retrieve(held.id).status, "requires_capture")

    def test_the_objects_of_the_older_way_have_the_same_verbs(self):
        held = stripe.PaymentIntent.create(
            amount=900, currency="usd", payment_method="pm_card_visa", capture_method="manual"
        )
        held = held.confirm()
        self.equal(held.status, "requires_capture")
        self.equal(held.capture(amount_to_capture=900).status, "succeeded")
        self.equal(stripe.PaymentIntent.create(amount=900, currency="usd").cancel().status, "canceled")


class Authenticating(Case):
    def test_a_3d_secure_card_asks_for_a_redirect(self):
        asked = paid(payment_method="pm_card_threeDSecure2Required", return_url="https://example.com/back")
        self.equal((asked.status, asked.next_action.type), ("requires_action", "redirect_to_url"))
        self.equal(asked.next_action.redirect_to_url.return_url, "https://example.com/back")
        self.holds(asked.next_action.redirect_to_url.url.startswith("http"))
        self.equal(asked.latest_charge, None)

    def test_off_session_nobody_can_be_asked(self):
        owner = customer()
        kept = v1.payment_methods.attach("pm_card_authenticationRequired", params={"customer": owner.id})
        with self.assertRaises(stripe.CardError) as caught:
            paid(customer=owner.id, payment_method=kept.id, off_session=True)
        error = caught.exception
        self.equal((error.code, error.http_status), ("authentication_required", 402))
        self.equal(error.error.payment_intent.status, "requires_payment_method")
        self.equal(error.error.payment_intent.latest_charge, None)
        self.equal(error.error.payment_method.id, kept.id)

    def test_a_card_that_is_set_up_for_later_pays_off_session(self):
        owner = customer()
        first = paid(customer=owner.id, setup_future_usage="off_session")
        self.equal(first.setup_future_usage, "off_session")
        kept = v1.customers.payment_methods.list(owner.id).data
        self.equal(ids(kept), [first.payment_method])
        later = paid(customer=owner.id, payment_method=kept[0].id, off_session=True)
        self.equal((later.status, later.customer), ("succeeded", owner.id))
        with self.assertRaises(stripe.InvalidRequestError) as caught:
            paid(customer=customer().id, payment_method=kept[0].id)
        self.equal((caught.exception.http_status, caught.exception.param), (400, "payment_method"))
