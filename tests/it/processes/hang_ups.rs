//! Scenario 39 and case 04: the client hangs up in the middle of a charge. It is finished, stored and replayed.

use std::time::Duration;

use reqwest::Client;
use serde_json::Value;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::{TRIES, had_begun};
use crate::support::{
    process::{ACME, Disk, Payments, slow},
    seen,
};

const A_CHARGE: Duration = Duration::from_millis(600);

/// Lets `hang_up` send the charge and leave. Then it is finished all the same, and a retry gets its answer.
async fn is_finished_and_replayed(
    client: &Client,
    hang_up: impl AsyncFn(&Disk, &Payments, &Value, u32),
    charge: impl Fn(u32) -> Value,
) {
    for n in 0..TRIES {
        let disk = Disk::new().await;
        let (payments, charge) = (disk.start().await, charge(n));
        hang_up(&disk, &payments, &charge, n).await;
        if had_begun(&disk).await {
            let retry = payments.post_with(client, "/charges", "k1", &charge).send().await.unwrap();
            let retry = seen(retry).await;
            assert_eq!((retry.status, retry.replayed), (201, true));
            let paid: Value = serde_json::from_str(&retry.body).unwrap();
            assert_eq!(retry.location.unwrap(), format!("/charges/{}", paid["id"].as_str().unwrap()));
            assert_eq!(payments.listing("/charges", ACME).await, [paid]);
            assert_eq!((disk.records().await, disk.effects().await), (1, 1));
            return;
        }
    }
    panic!("no charge outlived its client");
}

#[tokio::test]
async fn scenario_39_the_connection_is_closed() {
    let hang_up = async |disk: &Disk, payments: &Payments, charge: &Value, _| {
        let body = charge.to_string();
        let request = format!(
            "POST /charges HTTP/1.1\r\nhost: payments\r\nauthorization: Bearer {ACME}\r\nidempotency-key: k1\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut connection = TcpStream::connect(payments.addr()).await.unwrap();
        connection.write_all(request.as_bytes()).await.unwrap();
        disk.reaches(1).await;
    };
    is_finished_and_replayed(&Client::builder().no_proxy().build().unwrap(), hang_up, |_| slow(A_CHARGE)).await;
}

/// After 100 ms of 600 ms, or later if the machine is slow.
#[tokio::test]
async fn scenario_39_the_client_times_out() {
    let client = Client::builder().no_proxy().build().unwrap();
    let patience = |n: u32| Duration::from_millis(100) * (n + 1);
    let hang_up = async |_: &Disk, payments: &Payments, charge: &Value, n| {
        let post = payments.post_with(&client, "/charges", "k1", charge).timeout(patience(n));
        assert!(post.send().await.unwrap_err().is_timeout());
    };
    is_finished_and_replayed(&client, hang_up, |n| slow(patience(n) + Duration::from_millis(500))).await;
}

#[tokio::test]
async fn case_04_the_http_2_stream_is_reset() {
    let client = Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let hang_up = async |disk: &Disk, payments: &Payments, charge: &Value, _| {
        tokio::select! {
            answer = payments.post_with(&client, "/charges", "k1", charge).send() => panic!("too early: {answer:?}"),
            () = disk.reaches(1) => {} // drops the stream; the connection stays
        }
    };
    is_finished_and_replayed(&client, hang_up, |_| slow(A_CHARGE)).await;
}
