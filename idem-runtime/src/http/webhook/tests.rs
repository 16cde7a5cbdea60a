//! What the senders publish, and what their own libraries sign (`tests/sign.py`).

use std::time::{Duration, SystemTime};

use http::Request;
use serde::Deserialize;

use super::{
    Body, Delivery, GitHub, Parameters, Provider, Refused, Secrets, Standard, Stripe, Tolerance, Twilio, Verified,
};
use crate::error::{Error, ErrorKind};

#[derive(Deserialize)]
struct Signed {
    sent: u64,
    stripe: Vec<Case>,
    standard: Vec<Case>,
    twilio: Vec<Case>,
}

#[derive(Deserialize, Clone)]
struct Case {
    name: String,
    secret: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    query: String,
    headers: std::collections::BTreeMap<String, String>,
    body: String,
}

fn signed() -> Signed {
    serde_json::from_str(include_str!("tests/signed.json")).unwrap()
}

impl Case {
    fn delivered_to<P: Provider>(&self, provider: &P) -> Result<Verified<P>, ErrorKind> {
        let headers: Vec<_> = self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        deliver(provider, &self.query, &headers, self.body.as_bytes())
    }
}

fn deliver<P: Provider>(
    provider: &P,
    query: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Verified<P>, ErrorKind> {
    let mut request = Request::post(if query.is_empty() { "/in".to_owned() } else { format!("/in?{query}") });
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, ()) = request.body(()).unwrap().into_parts();
    let body = body.to_vec().into();
    provider.verify(&Delivery::new(&head, &body)).map_err(|refused| Error::from(refused).kind())
}

fn at(seconds: u64) -> Tolerance {
    Tolerance::default().with_clock(move || SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

#[test]
fn stripe_takes_what_its_own_library_signs() {
    let Signed { sent, stripe, .. } = signed();
    for case in stripe {
        let provider = Stripe::new([&case.secret]).unwrap().with_tolerance(at(sent));
        let event = case.delivered_to(&provider).unwrap();
        assert_eq!(event.bytes().as_ref(), case.body.as_bytes());
        let id = event.json::<serde_json::Value>().unwrap()["id"].clone();
        assert_eq!(event.id, id.as_str().unwrap());
        refuses_damage(&provider, &case);
    }
}

#[test]
fn standard_takes_what_its_own_library_signs() {
    let Signed { sent, standard, .. } = signed();
    for case in standard {
        let provider = Standard::new([&case.secret]).unwrap().with_tolerance(at(sent));
        assert_eq!(case.delivered_to(&provider).unwrap().id, case.headers["webhook-id"]);
        refuses_damage(&provider, &case);
    }
}

#[test]
fn twilio_takes_what_its_own_library_signs() {
    let mut ids = Vec::new();
    for case in signed().twilio {
        let provider = Twilio::new(&case.url, [&case.secret]).unwrap();
        let event = case.delivered_to(&provider).unwrap();
        match (&*event, case.name.as_str()) {
            (Parameters::Body(body), "json") => assert_eq!(body.bytes().as_ref(), case.body.as_bytes()),
            (Parameters::Form(_), "several") => assert_eq!(event.get("MediaUrl"), Some("a")),
            (Parameters::Form(_), "sms" | "port") => assert_eq!(event.get("Body"), Some("Zoë & co = 1")),
            (_, other) => panic!("{other}"),
        }
        ids.push(event.id);
        refuses_damage(&provider, &case);
    }
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((ids.len(), count), (4, 4), "other events, other ids");
}

/// A byte of the body, or of what else is signed, is another one.
fn refuses_damage<P: Provider>(provider: &P, case: &Case) {
    let reformatted = Case { body: format!("{} ", case.body), ..case.clone() };
    assert_eq!(reformatted.delivered_to(provider).err(), Some(ErrorKind::Unverified), "{}", case.name);
    let without = |name: &str| {
        let mut case = case.clone();
        case.headers.remove(name);
        case
    };
    for name in ["stripe-signature", "webhook-signature", "x-twilio-signature"] {
        if case.headers.contains_key(name) {
            assert_eq!(without(name).delivered_to(provider).err(), Some(ErrorKind::Unverified), "{name}");
        }
    }
    for name in ["webhook-id", "webhook-timestamp"] {
        if case.headers.contains_key(name) {
            assert_eq!(without(name).delivered_to(provider).err(), Some(ErrorKind::InvalidEvent), "{name}");
        }
    }
    let elsewhere = Case { query: format!("{}&more=1", case.query), ..case.clone() };
    if !case.url.is_empty() {
        assert_eq!(elsewhere.delivered_to(provider).err(), Some(ErrorKind::Unverified), "another URL");
    }
}

const SPEC: (&str, &str) = ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", r#"{"test": 2432232314}"#);
const OF_SPEC: [(&str, &str); 3] = [
    ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
    ("webhook-timestamp", "1614265330"),
    ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
];

#[test]
fn standard_takes_the_published_vectors() {
    let provider = Standard::new([SPEC.0]).unwrap().with_tolerance(at(1_614_265_330));
    let event = deliver(&provider, "", &OF_SPEC, SPEC.1.as_bytes()).unwrap();
    assert_eq!(event.id, "msg_p5jXN8AQM9LWM0D4loKWxJek");
    let provider = Standard::new(["whsec_plJ3nmyCDGBKInavdOK15jsl"]).unwrap().with_tolerance(at(1_731_705_121));
    let headers = [
        ("webhook-id", "msg_loFOjxBNrRLzqYUf"),
        ("webhook-timestamp", "1731705121"),
        ("webhook-signature", "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="),
    ];
    deliver(&provider, "", &headers, br#"{"event_type":"ping","data":{"success":true}}"#).unwrap();
}

#[test]
fn github_takes_its_documented_example() {
    let provider = GitHub::new(["It's a Secret to Everybody"]).unwrap();
    let headers = [
        ("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
        ("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
    ];
    let event = deliver(&provider, "", &headers, b"Hello, World!").unwrap();
    assert_eq!(event.delivery.as_deref(), Some("72d3162e-cc78-11e3-81ab-4c9367dc0958"));
    assert_eq!(event.id, "dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f", "the body's SHA-256");
    let another = [headers[0], ("x-github-delivery", "another")];
    assert_eq!(
        deliver(&provider, "", &another, b"Hello, World!").unwrap().id,
        event.id,
        "the delivery's id is not signed"
    );
    assert_eq!(deliver(&provider, "", &headers, b"Hello, World?").err(), Some(ErrorKind::Unverified));
    for bad in ["", "sha1=757107ea", "757107ea", "sha256=zz", "sha256="] {
        assert_eq!(
            deliver(&provider, "", &[("x-hub-signature-256", bad)], b"x").err(),
            Some(ErrorKind::Unverified),
            "{bad}"
        );
    }
}

#[test]
fn twilio_takes_its_documented_example() {
    let provider = Twilio::new("https://mycompany.com/myapp.php", ["12345"]).unwrap();
    let form = "CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309&To=%2B18005551212";
    let headers = [("x-twilio-signature", "RSOYDt4T1cUTdK1PDd93/VVr8B8=")];
    let event = deliver(&provider, "foo=1&bar=2", &headers, form.as_bytes()).unwrap();
    assert_eq!(event.get("CallSid"), Some("CA1234567890ABCDE"));
    assert_eq!(deliver(&provider, "foo=1", &headers, form.as_bytes()).err(), Some(ErrorKind::Unverified));
}

/// A body whose digest is signed is compared with it whatever its media type: a signed URL alone must not carry a form.
#[test]
fn twilio_takes_no_form_under_the_signature_of_another_body() {
    let case = signed().twilio.into_iter().find(|case| case.name == "json").unwrap();
    let provider = Twilio::new(&case.url, [&case.secret]).unwrap();
    for body in ["", "MessageSid=SM1"] {
        let forged = Case { body: body.to_owned(), ..case.clone() };
        assert_eq!(forged.delivered_to(&provider).err(), Some(ErrorKind::Unverified));
    }
}

#[test]
fn a_time_stamp_counts_for_300_seconds_either_way() {
    let Signed { sent, stripe, standard, .. } = signed();
    for (now, taken) in [(sent - 301, false), (sent - 300, true), (sent + 300, true), (sent + 301, false)] {
        let of_stripe = Stripe::new([&stripe[0].secret]).unwrap().with_tolerance(at(now));
        let of_standard = Standard::new([&standard[0].secret]).unwrap().with_tolerance(at(now));
        let kinds = [stripe[0].delivered_to(&of_stripe).err(), standard[0].delivered_to(&of_standard).err()];
        assert_eq!(kinds, [(!taken).then_some(ErrorKind::Unverified); 2], "{now}");
    }
}

#[test]
fn a_time_stamp_is_whole_seconds() {
    for bad in ["", "-1", "+1", "1.0", "1e9", " 1", "99999999999999999999", "18446744073709551615"] {
        let refused = at(1).check(bad).map_err(|refused| Error::from(refused).kind());
        assert_ne!(refused, Ok(()), "{bad}");
    }
    assert!(at(1).check("1").is_ok());
}

#[test]
fn while_secrets_are_exchanged_either_is_good() {
    let provider = Standard::new(["whsec_plJ3nmyCDGBKInavdOK15jsl", SPEC.0]).unwrap().with_tolerance(at(1_614_265_330));
    deliver(&provider, "", &OF_SPEC, SPEC.1.as_bytes()).unwrap();
    // The sender may sign with both, and with schemes to come.
    let several = format!("v1a,abc v1,not-base64 v1,{} {}", "A".repeat(43) + "=", OF_SPEC[2].1);
    let headers = [OF_SPEC[0], OF_SPEC[1], ("webhook-signature", several.as_str())];
    deliver(&provider, "", &headers, SPEC.1.as_bytes()).unwrap();
    let case = &signed().stripe[0];
    let provider = Stripe::new(["whsec_new", &case.secret]).unwrap().with_tolerance(at(1_700_000_000));
    let header = case.headers["stripe-signature"].replacen(",v1=", &format!(",v1={},v1=", "0".repeat(64)), 1);
    deliver(&provider, "", &[("stripe-signature", &header)], case.body.as_bytes()).unwrap();
}

#[test]
fn a_secret_that_lets_everybody_in_is_none() {
    assert!(Secrets::new([""]).is_err());
    assert!(Secrets::new(Vec::<String>::new()).is_err());
    assert!(Stripe::new(["whsec_good", ""]).is_err());
    assert!(Standard::new(["whsec_"]).is_err());
    assert!(Standard::new(["whsec_no base64"]).is_err());
    assert!(GitHub::new(Vec::<&str>::new()).is_err());
    assert!(Twilio::new("https://example.com", [""]).is_err());
}

#[test]
fn nothing_shows_a_secret() {
    let shown = [
        format!("{:?}", Stripe::new(["whsec_hidden"]).unwrap()),
        format!("{:?}", Standard::new([SPEC.0]).unwrap()),
        format!("{:?}", GitHub::new(["whsec_hidden"]).unwrap()),
        format!("{:?}", Twilio::new("https://example.com", ["whsec_hidden"]).unwrap()),
    ];
    for shown in shown {
        assert!(shown.contains("Secrets(1)") && !shown.contains("hidden") && !shown.contains("MfKQ"), "{shown}");
    }
}

#[test]
fn a_stripe_event_without_an_id_is_none() {
    let secrets = Secrets::new(["s"]).unwrap();
    let provider = Stripe::new(["s"]).unwrap().with_tolerance(at(1));
    for body in ["", "[]", "{}", r#"{"id":1}"#, r#"{"id":""}"#, r#"{"data":{"id":"evt"}}"#] {
        let header = format!("t=1,v1={}", hex::encode(hmac_sha256(b"s", format!("1.{body}").as_bytes())));
        let kind = deliver(&provider, "", &[("stripe-signature", &header)], body.as_bytes()).err();
        assert_eq!(kind, Some(ErrorKind::InvalidEvent), "{body}");
        assert!(
            secrets.verify_sha256(&[b"1.", body.as_bytes()], &[hmac_sha256(b"s", b"1.")]).is_err() || body.is_empty()
        );
    }
    for header in ["", "v1=00", "t=1", "t=1,v0=00", "nonsense", "t=,v1="] {
        let kind = deliver(&provider, "", &[("stripe-signature", header)], b"{}").err();
        assert_eq!(kind, Some(ErrorKind::Unverified), "{header}");
    }
}

#[test]
fn a_signature_that_stands_twice_is_none() {
    let headers = [OF_SPEC[0], OF_SPEC[1], OF_SPEC[2], OF_SPEC[2]];
    let provider = Standard::new([SPEC.0]).unwrap().with_tolerance(at(1_614_265_330));
    assert_eq!(deliver(&provider, "", &headers, SPEC.1.as_bytes()).err(), Some(ErrorKind::Unverified));
}

/// Of one signature, `msg.1` at 5 and `msg` at 1 with a body `5.…`.
#[test]
fn an_id_with_a_dot_is_none() {
    let provider = Standard::new(["c2VjcmV0"]).unwrap().with_tolerance(at(5));
    let signature = format!("v1,{}", base64(&hmac_sha256(b"secret", b"msg.1.5.{}")));
    let headers = [("webhook-id", "msg.1"), ("webhook-timestamp", "5"), ("webhook-signature", &signature)];
    assert_eq!(deliver(&provider, "", &headers, b"{}").err(), Some(ErrorKind::InvalidEvent));
    let headers = [("webhook-id", "msg"), ("webhook-timestamp", "1"), ("webhook-signature", &signature)];
    assert_eq!(deliver(&provider, "", &headers, b"5.{}").unwrap().id, "msg");
}

/// As the documentation of `Provider` shows it.
#[test]
fn ones_own_provider_is_a_dozen_lines() {
    #[derive(Clone)]
    struct Acme(Secrets);

    impl Provider for Acme {
        type Event = Body;

        fn verify(&self, delivery: &Delivery<'_>) -> Result<Verified<Self>, Refused> {
            let signature = delivery.hex("x-acme-signature")?;
            let id = delivery.header("x-acme-event")?;
            self.0.verify_sha256(&[id.as_bytes(), b"\n", delivery.body()], &[signature])?;
            Ok(Verified::new(id, Body::from(delivery.body().clone())))
        }
    }

    let provider = Acme(Secrets::new(["s"]).unwrap());
    let signature = hex::encode(hmac_sha256(b"s", b"e1\nbody"));
    let headers = [("x-acme-signature", signature.as_str()), ("x-acme-event", "e1")];
    assert_eq!(deliver(&provider, "", &headers, b"body").unwrap().id, "e1");
    assert_eq!(deliver(&provider, "", &headers, b"other").err(), Some(ErrorKind::Unverified));
}

fn hmac_sha256(secret: &[u8], signed: &[u8]) -> Vec<u8> {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = <Hmac<sha2::Sha256> as KeyInit>::new_from_slice(secret).unwrap();
    mac.update(signed);
    mac.finalize().into_bytes().to_vec()
}

fn base64(bytes: &[u8]) -> String {
    use ::base64::{Engine, engine::general_purpose::STANDARD};
    STANDARD.encode(bytes)
}
