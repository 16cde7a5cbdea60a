//! A deploy took `Steps` away.

use super::*;
use crate::support::Backend;

/// It would do by other keys what the steps have done.
#[tokio::test]
async fn clause_25_what_has_recorded_steps_is_not_run_again_without_them() {
    let shop = Shop::open(router()).await;
    let script = ["500", "ok"];
    assert_eq!(send(&shop, "/charge", "k1", &script).await.0, 500);
    let (column, value) = if shop.place.backend() == Backend::Sqlite { ("", "") } else { (", nr", ", 1") };
    let step = format!("insert into idem_step (kid, epoch, step, kind, started_at{column})");
    shop.sql(&format!("{step} select kid, epoch, 'a', 1, created_at{value} from idem_key")).await;
    let started = shop.probe.started();
    assert_eq!(told(&shop, "/charge", "k1", &script).await.slug, "idempotency-outcome-unknown");
    let found = async || shop.record("reruns.charge", "k1").await;
    eventually(async || found().await.state == Stands::InDoubt).await; // said after its caller was told
    assert_eq!((found().await.reason, shop.probe.started()), (Some(Reason::CodeChanged), started));
    assert_eq!(told(&shop, "/charge", "k1", &script).await.slug, "idempotency-outcome-unknown");
}
