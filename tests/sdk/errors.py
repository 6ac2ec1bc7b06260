"""Every class of error that the SDK has for us, with its code and param."""

import socket

import stripe
from support import API_KEY, BASE_URL, CARD, Case, charge, intent, paid, v1

INVALID = stripe.InvalidRequestError


class Errors(Case):
    def test_what_is_wrong_with_a_payment_is_named_by_code_and_param(self):
        create = v1.payment_intents.create
        cases = [
            ({"currency": "usd"}, "parameter_missing", "amount"),
            ({"amount": 100}, "parameter_missing", "currency"),
            ({"amount": "10.5", "currency": "usd"}, "parameter_invalid_integer", "amount"),
            ({"amount": 49, "currency": "usd"}, "amount_too_small", "amount"),
            ({"amount": 100000000, "currency": "usd"}, "amount_too_large", "amount"),
            ({"amount": 100, "currency": "xyz"}, None, "currency"),
            ({"amount": 100, "currency": "usd", "amonut": 1}, "parameter_unknown", "amonut"),
            ({"amount": 100, "currency": "usd", "customer": "cus_x"}, "resource_missing", "customer"),
            ({"amount": 100, "currency": "usd", "payment_method": "pm_x"}, "resource_missing", "payment_method"),
            ({"amount": 100, "currency": "usd", "payment_method": "tok_visa"}, "resource_missing", "payment_method"),
            ({"amount": 100, "currency": "usd", "off_session": True}, None, "off_session"),
        ]
        for params, code, param in cases:
            with self.subTest(params):
                self.refused(INVALID, 400, code, param, create, params=params)

    def test_what_stripe_has_and_this_service_has_not_is_said_to_be_unsupported(self):
        unsupported = {
            "application_fee_amount": 1,
            "confirmation_token": "ctoken_1",
            "on_behalf_of": "acct_1",
            "transfer_data": {"destination": "acct_1"},
        }
        for param, value in unsupported.items():
            params = {"amount": 100, "currency": "usd", param: value}
            error = self.refused(
                INVALID, 400, "parameter_unknown", param, v1.payment_intents.create, params=params
            )
            self.holds("does not support it" in error.user_message, error.user_message)

    def test_what_changes_nothing_about_a_card_payment_is_taken(self):
        made = v1.payment_intents.create(params={
            "amount": 100,
            "currency": "usd",
            "excluded_payment_method_types": ["klarna"],
            "mandate_data": {"customer_acceptance": {"type": "offline"}},
            "payment_method_options": {"card": {"network": "visa"}, "klarna": {"preferred_locale": "en-US"}},
            "use_stripe_sdk": True,
        })
        self.equal(made.status, "requires_payment_method")

    def test_what_is_wrong_with_a_card_is_a_card_error_and_names_the_part(self):
        cases = [
            ({"number": "4242424242424241"}, "incorrect_number", "number"),
            ({"exp_month": 13}, "invalid_expiry_month", "exp_month"),
            ({"exp_year": 2001}, "invalid_expiry_year", "exp_year"),
            ({"cvc": "12"}, "invalid_cvc", "cvc"),
            ({"number": "4111111111111111"}, "card_declined", "number"),
        ]
        for change, code, param in cases:
            with self.subTest(change):
                card = {**CARD, **change}
                self.refused(stripe.CardError, 402, code, param, v1.tokens.create, params={"card": card})
        self.refused(
            INVALID, 400, "parameter_missing", "card[exp_month]",
            v1.tokens.create, params={"card": {"number": CARD["number"], "exp_year": 2044}},
        )

    def test_an_id_in_the_path_that_names_nothing_is_404(self):
        cases = [
            (v1.customers, "customer", "id"),
            (v1.charges, "charge", "id"),
            (v1.refunds, "refund", "id"),
            (v1.tokens, "token", "id"),
            (v1.payment_methods, "PaymentMethod", "id"),
            (v1.payment_intents, "payment_intent", "intent"),
            (v1.balance_transactions, "balance transaction", "id"),
            (v1.events, "event", "id"),
        ]
        for service, noun, param in cases:
            with self.subTest(noun):
                error = self.refused(INVALID, 404, "resource_missing", param, service.retrieve, "nothing")
                self.equal(error.user_message, f"No such {noun}: 'nothing'")
        self.refused(INVALID, 404, "resource_missing", "id", v1.customers.delete, "cus_nothing")

    def test_an_id_in_a_parameter_that_names_nothing_is_400(self):
        nothing = charge().id[:-1] + "x"
        missing = (INVALID, 400, "resource_missing")
        self.refused(*missing, "charge", v1.refunds.create, params={"charge": nothing})
        self.refused(*missing, "starting_after", v1.charges.list, params={"starting_after": nothing})
        self.refused(*missing, "ending_before", v1.charges.list, params={"ending_before": nothing})
        self.refused(*missing, "payout", v1.balance_transactions.list, params={"payout": "po_nothing"})
        self.refused(
            *missing, "source",
            v1.charges.create, params={"amount": 100, "currency": "usd", "source": "pm_card_visa"},
        )
        self.refused(INVALID, 400, "parameter_missing", "charge", v1.refunds.create, params={})

    def test_limits_and_cursors_are_checked(self):
        for limit in [0, 101]:
            self.refused(
                INVALID, 400, "parameter_invalid_integer", "limit", v1.charges.list, params={"limit": limit}
            )
        both = {"starting_after": charge().id, "ending_before": charge().id}
        self.refused(INVALID, 400, None, "ending_before", v1.charges.list, params=both)

    def test_a_wrong_state_comes_with_the_intent(self):
        error = self.refused(
            INVALID, 400, "payment_intent_unexpected_state", None, v1.payment_intents.confirm, intent().id
        )
        self.equal(error.error.payment_intent.status, "requires_payment_method")
        error = self.refused(
            INVALID, 400, "payment_intent_unexpected_state", None, v1.payment_intents.cancel, paid().id
        )
        self.equal(error.error.payment_intent.status, "succeeded")

    def test_a_wrong_key_is_an_authentication_error(self):
        stranger = stripe.StripeClient("sk_test_wrong", base_addresses={"api": BASE_URL})
        with self.assertRaises(stripe.AuthenticationError) as caught:
            stranger.v1.balance.retrieve()
        self.equal(caught.exception.http_status, 401)
        self.holds(caught.exception.user_message.startswith("Invalid API Key provided: "))
        self.holds("sk_test_wrong" not in caught.exception.user_message)
        with self.assertRaises(stripe.AuthenticationError):
            stranger.v1.customers.create()

    def test_no_server_is_a_connection_error(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            nobody = stripe.StripeClient(
                API_KEY,
                base_addresses={"api": f"http://127.0.0.1:{unused.getsockname()[1]}"},
                max_network_retries=0,
            )
            with self.assertRaises(stripe.APIConnectionError) as caught:
                nobody.v1.balance.retrieve()
            self.equal(caught.exception.http_status, None)

    def test_what_this_service_has_not_is_an_invalid_request(self):
        error = self.refused(INVALID, 404, None, None, v1.invoices.list)
        self.equal(error.user_message.startswith("/v1/invoices is part of Stripe's API, but"), True)

    def test_another_account_cannot_be_acted_for(self):
        error = self.refused(
            INVALID, 400, None, None, v1.balance.retrieve, options={"stripe_account": "acct_1"}
        )
        self.holds("Stripe-Account" in error.user_message)

    def test_an_error_names_its_request_and_the_page_that_explains_it(self):
        with self.assertRaises(INVALID) as caught:
            v1.customers.retrieve("cus_nothing")
        error = caught.exception
        self.holds(error.request_id.startswith("req_"))
        self.equal(error.error.doc_url, "https://docs.stripe.com/error-codes#resource-missing")
        self.equal(error.headers["stripe-should-retry"], "false")
