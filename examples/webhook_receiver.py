"""Receives webhooks: verifies, answers fast, takes each event once. It needs the package stripe.

    WEBHOOK_SECRET=whsec_... python3 examples/webhook_receiver.py

The endpoint is http://127.0.0.1:4242/hook; the variable PORT chooses another port.
"""

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

import stripe

SECRET = os.environ["WEBHOOK_SECRET"]  # the service showed it when the endpoint was made
PORT = int(os.environ.get("PORT", "4242"))
seen = set()  # in production: a table, written in the transaction of what the event causes


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = stripe.Webhook.construct_event(body, self.headers["Stripe-Signature"], SECRET)
        except (ValueError, stripe.SignatureVerificationError):
            return self.answer(400)
        if event.id not in seen:
            seen.add(event.id)
            print(event.type, event.data.object.id, flush=True)  # put long work into a queue
        self.answer(200)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()


HTTPServer(("127.0.0.1", PORT), Receiver).serve_forever()
