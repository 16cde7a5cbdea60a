"""Writes signed.json: what the official libraries sign, and whether they take it themselves.

    python3 -m venv venv && venv/bin/pip install stripe==16.1.0 standardwebhooks==1.1.0 twilio==9.13.0
    venv/bin/python sign.py > signed.json
"""

import base64
import datetime
import hashlib
import hmac
import json
import time
from unittest import mock
from urllib.parse import urlencode

import stripe
from standardwebhooks import Webhook
from twilio.request_validator import RequestValidator

SENT = 1_700_000_000
BODIES = {
    "plain": '{"id":"evt_1","object":"event","type":"invoice.paid"}',
    "formatted": '{\n  "id": "evt_2",\n  "object": "event",\n  "name": "Zoë \\u00e9",\n  "amount": 1.0\n}\n',
    "unicode": '{"id":"evt_3","object":"event","name":"Müller – 東京 😀"}',
}


def stripe_cases():
    secret = "whsec_test_secret"
    for name, body in BODIES.items():
        signature = stripe.WebhookSignature._compute_signature(f"{SENT}.{body}", secret)
        header = f"t={SENT},v1={signature},v0=6ffbb59b2300aae63f272406069a9788598b792a944a07aba816edb039989a39"
        with mock.patch("time.time", return_value=SENT):
            assert stripe.WebhookSignature.verify_header(body, header, secret, tolerance=300)
        yield {"name": name, "secret": secret, "headers": {"stripe-signature": header}, "body": body}


def standard_cases():
    secret = "whsec_plJ3nmyCDGBKInavdOK15jsl"
    webhook = Webhook(secret)
    for name, body in BODIES.items():
        sent = datetime.datetime.fromtimestamp(SENT, datetime.timezone.utc)
        signature = webhook.sign(f"msg_{name}", sent, body)
        headers = {"webhook-id": f"msg_{name}", "webhook-timestamp": str(SENT), "webhook-signature": signature}
        yield {"name": name, "secret": secret, "headers": headers, "body": body}


class Several(dict):
    """A form in which a name can stand several times, as web frameworks hand it over."""

    def getlist(self, name):
        value = self[name]
        return value if isinstance(value, list) else [value]


def twilio_cases():
    token, url = "12345", "https://mycompany.com/myapp.php"
    validator = RequestValidator(token)
    sms = {"MessageSid": "SM1", "From": "+14158675309", "Body": "Zoë & co = 1", "NumMedia": "0", "Empty": ""}
    several = [("MediaUrl", "b"), ("MediaUrl", "a"), ("MediaUrl", "b"), ("To", "+18005551212")]
    by_name = Several({"MediaUrl": ["b", "a", "b"], "To": "+18005551212"})
    for name, query, form, params in [
        ("sms", "foo=1&bar=2", urlencode(sms), sms),
        ("several", "", urlencode(several), by_name),
        ("port", "", urlencode(sms), sms),
    ]:
        signed_url = url.replace(".com", ".com:443") if name == "port" else url
        signature = validator.compute_signature(signed_url + ("?" + query if query else ""), params)
        assert validator.validate(url + ("?" + query if query else ""), params, signature)
        yield {"name": name, "secret": token, "url": url, "query": query, "body": form,
               "headers": {"x-twilio-signature": signature, "content-type": "application/x-www-form-urlencoded"}}
    body = BODIES["unicode"]
    query = "bodySHA256=" + hashlib.sha256(body.encode()).hexdigest()
    signature = validator.compute_signature(f"{url}?{query}", {})
    assert validator.validate(f"{url}?{query}", body, signature)
    yield {"name": "json", "secret": token, "url": url, "query": query, "body": body,
           "headers": {"x-twilio-signature": signature, "content-type": "application/json"}}


print(json.dumps({
    "sent": SENT,
    "stripe": list(stripe_cases()),
    "standard": list(standard_cases()),
    "twilio": list(twilio_cases()),
}, indent=1, ensure_ascii=False))
