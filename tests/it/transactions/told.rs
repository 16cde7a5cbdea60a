//! What operators see of transactions that fail.

use serde_json::json;
use tracing::Level;

use super::shop::open;
use crate::support::{Fault, Logs, Meters, Verb};

#[tokio::test]
async fn clause_16_a_transaction_that_fails_is_told_and_counted_as_such() {
    let (logs, meters) = (Logs::collect(), Meters::collect());
    let shop = open().await;
    shop.store.tell(Verb::Begin, Fault::Fails(1));
    assert_eq!(shop.order("/orders", "k", &[]).await.status(), 503);
    let warned = logs.alarming();
    assert!(warned[0].level == Level::WARN && warned[0].text.contains("could not be opened"), "{warned:?}");
    assert!(warned[0].text.contains("the test says so"), "the cause: {warned:?}");

    let by_itself = [json!({ "sql": "rollback" })];
    let (nested, kept) = ([json!({ "nest": "left" })], [json!("keep")]);
    for (key, steps) in [("k", &by_itself), ("nested", &nested), ("kept", &kept)] {
        let before = logs.alarming().len();
        assert_eq!(shop.order("/orders", key, steps).await.status(), 500, "{key}");
        let said = logs.alarming().split_off(before);
        assert!(said[0].level == Level::ERROR && said[0].text.contains("a transaction failed"), "{said:?}");
        assert!(said.iter().all(|line| !line.text.contains("lease")), "{said:?}");
    }
    let counted = |outcome| meters.value(&format!("idem_requests_total{{op=tx.order,outcome={outcome}}}"));
    assert_eq!(["transaction_failed", "store_unavailable", "released"].map(counted), [3.0, 1.0, 0.0]);
    assert_eq!(meters.value("idem_fence_rejected_total{op=tx.order}"), 0.0);
}
