//! The example `webhooks`: a real process, with deliveries as the four senders make them.

use std::{net::SocketAddr, time::SystemTime};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, RequestBuilder};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sha1::Sha1;
use tokio::process::Child;

use super::sender::{hmac_sha256, of_standard, of_stripe};
use crate::support::{
    problem,
    process::{Disk, Log, spawn},
};

struct Webhooks {
    child: Child,
    addr: SocketAddr,
    log: Log,
    client: Client,
}

#[expect(clippy::disallowed_methods, reason = "a sender's clock")]
fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
}

impl Webhooks {
    async fn start(disk: &Disk, set: &[(&str, &str)]) -> Self {
        let (child, addr, log) = spawn("webhooks", disk, set).await;
        Self { child, addr, log, client: Client::builder().no_proxy().build().unwrap() }
    }

    fn post(&self, sender: &str, body: &str) -> RequestBuilder {
        self.client.post(format!("http://{}/webhooks/{sender}", self.addr)).body(body.to_owned())
    }

    fn stripe(&self, id: &str, secret: &str) -> RequestBuilder {
        let body = json!({"id": id, "type": "invoice.paid"}).to_string();
        self.post("stripe", &body).header("stripe-signature", of_stripe(secret, now(), &body))
    }

    fn github(&self, delivery: &str) -> RequestBuilder {
        let body = r#"{"action":"opened","number":7}"#;
        let signature = format!("sha256={}", hex::encode(hmac_sha256(b"test_github", body)));
        self.post("github", body).header("x-hub-signature-256", signature).header("x-github-delivery", delivery)
    }

    fn standard(&self, id: &str) -> RequestBuilder {
        let (body, sent) = (r#"{"type":"user.created"}"#, now());
        let signature = of_standard("whsec_dGVzdF9zdGFuZGFyZA==", id, sent, body);
        let post = self.post("standard", body).header("webhook-id", id);
        post.header("webhook-timestamp", sent).header("webhook-signature", signature)
    }

    fn twilio(&self, public: &str, message: &str) -> RequestBuilder {
        let signed = format!("{public}/webhooks/twilio?a=1MessageSid{message}MessageStatusdelivered");
        let mut mac = <Hmac<Sha1> as KeyInit>::new_from_slice(b"test_twilio").unwrap();
        mac.update(signed.as_bytes());
        let form = format!("MessageStatus=delivered&MessageSid={message}");
        let post = self.post("twilio?a=1", &form).header("content-type", "application/x-www-form-urlencoded");
        post.header("x-twilio-signature", BASE64.encode(mac.finalize().into_bytes()))
    }

    /// As provider and kind, sorted.
    async fn effects(&self) -> Vec<(String, String)> {
        let effects = self.client.get(format!("http://{}/effects", self.addr)).send().await.unwrap();
        let effects: Value = effects.json().await.unwrap();
        let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
        let items = effects["items"].as_array().unwrap().iter();
        let mut effects: Vec<_> = items.map(|item| (text(item, "provider"), text(item, "what"))).collect();
        effects.sort();
        effects
    }
}

const PUBLIC: &str = "https://hooks.example.com";

#[tokio::test]
async fn clause_41_every_sender_s_event_delivered_fifty_times_at_once_is_one_effect() {
    let disk = Disk::new().await;
    let webhooks = Webhooks::start(&disk, &[("PUBLIC_URL", PUBLIC), ("STRIPE_SECRET", "whsec_new,whsec_old")]).await;
    let health = webhooks.client.get(format!("http://{}/healthz", webhooks.addr)).send().await.unwrap();
    assert_eq!(health.status(), 200);
    let deliver = |n: usize| {
        [
            webhooks.stripe("evt_1", if n.is_multiple_of(2) { "whsec_new" } else { "whsec_old" }),
            webhooks.github(&format!("delivery-{n}")),
            webhooks.standard("msg_1"),
            webhooks.twilio(PUBLIC, "SM1"),
        ]
    };
    let deliveries: Vec<_> = (0..50).flat_map(deliver).map(|request| tokio::spawn(request.send())).collect();
    for delivery in deliveries {
        let status = delivery.await.unwrap().unwrap().status().as_u16();
        assert!((200..300).contains(&status) || status == 503, "{status}\n{}", webhooks.log.lock().unwrap());
    }
    let again = futures_util::future::join_all(deliver(50).map(RequestBuilder::send)).await;
    for answer in again {
        let answer = answer.unwrap();
        assert!(answer.status().is_success() && answer.headers()["idempotent-replayed"] == "true", "{answer:?}");
    }
    let once =
        [("github", "opened"), ("standard", "user.created"), ("stripe", "invoice.paid"), ("twilio", "delivered")];
    let once = once.map(|(sender, what)| (sender.to_owned(), what.to_owned()));
    assert_eq!(webhooks.effects().await, once);
}

#[tokio::test]
async fn scenario_88_the_program_takes_nothing_that_is_forged() {
    let disk = Disk::new().await;
    let webhooks = Webhooks::start(&disk, &[("PUBLIC_URL", PUBLIC)]).await;
    let forged = [
        webhooks.stripe("evt_1", "whsec_guessed"),
        webhooks.post("github", "{}").header("x-hub-signature-256", format!("sha256={}", "0".repeat(64))),
        webhooks.standard("msg_1").header("webhook-signature", "v1,AAAA"),
        webhooks.twilio("https://elsewhere.example.com", "SM1"),
    ];
    for forged in forged {
        let told = problem(forged.send().await.unwrap()).await;
        assert_eq!((told.status, told.slug.as_str()), (401, "idempotency-signature-invalid"));
    }
    assert_eq!(webhooks.effects().await, []);
    assert_eq!(disk.records().await, 0);
}

#[tokio::test]
async fn scenario_55_the_program_ends_when_it_is_told_to() {
    let disk = Disk::new().await;
    let mut webhooks = Webhooks::start(&disk, &[]).await;
    assert_eq!(webhooks.stripe("evt_1", "whsec_test_stripe").send().await.unwrap().status(), 200);
    let id = i32::try_from(webhooks.child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), webhooks.child.wait()).await;
    assert!(ended.expect("still running").unwrap().success());
}
