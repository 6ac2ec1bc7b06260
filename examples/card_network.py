"""Plays the card network: tells the service, signed, what has become of a refund or a charge.

Start the service with a secret that you know, `NETWORK_SECRET=whsec_network make run`, and then:

    python3 examples/card_network.py refund.succeeded re_...
    python3 examples/card_network.py refund.failed re_...
    python3 examples/card_network.py dispute.created ch_...
    python3 examples/card_network.py dispute.closed ch_... dp_... won

A network may deliver twice, and so does this program: the second delivery finds the first answer.

It reads three variables: ONCEPAY (where the service listens, http://127.0.0.1:8080), API_KEY (the account's key,
sk_test_oncepay_demo) and NETWORK_SECRET (the secret of the signature, whsec_network).
"""

import hashlib
import hmac
import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

SERVER = os.environ.get("ONCEPAY", "http://127.0.0.1:8080")
API_KEY = os.environ.get("API_KEY", "sk_test_oncepay_demo")
SECRET = os.environ.get("NETWORK_SECRET", "whsec_network")


def call(path, headers, body=None):
    request = urllib.request.Request(SERVER + path, headers=headers, data=body)
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer), answer.headers
    except urllib.error.HTTPError as error:
        sys.exit(error.read().decode())


if len(sys.argv) != {"dispute.closed": 5}.get("".join(sys.argv[1:2]), 3):
    sys.exit(__doc__)
kind, subject, *more = sys.argv[1:]
if kind.startswith("refund."):
    data = {"refund": subject}
else:
    # A notification of a dispute always says what the dispute is about. The network names it: dp_ and a UUIDv7.
    fresh = f"{time.time_ns() // 1_000_000:012x}7{uuid.uuid4().hex[13:]}"
    name = more[0] if more else "dp_" + fresh
    data = {"dispute": name, "charge": subject, "reason": "fraudulent", "inquiry": False}
    if kind == "dispute.closed":
        data["outcome"] = more[1]

# A real network knows its merchants. This one asks the service whose key it has.
account, _ = call("/v1/account", {"Authorization": f"Bearer {API_KEY}"})
notification = {
    "id": "ntf_" + uuid.uuid4().hex,
    "type": kind,
    "account": account["id"],
    "created": int(time.time()),
    "data": data,
}
body = json.dumps(notification).encode()
signed = f"{notification['created']}.".encode() + body
signature = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
headers = {"Content-Type": "application/json", "Stripe-Signature": f"t={notification['created']},v1={signature}"}
print(json.dumps(notification, indent=2))
for _ in range(2):
    answer, answered_headers = call("/v1/provider_notifications", headers, body)
    print(json.dumps(answer), "Idempotent-Replayed:", answered_headers.get("Idempotent-Replayed", "false"))
