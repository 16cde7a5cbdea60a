//! What lists cost.

use super::*;

#[tokio::test]
async fn what_is_open_or_linked_is_found_by_an_index() {
    let place = Place::new();
    place.migrated().await;
    let mut raw = place.raw().await;
    for statement in crate::store::sqlite::list::statements() {
        let plan = sqlx::query(sqlx::AssertSqlSafe(format!("explain query plan {statement}")));
        let rows = plan.fetch_all(&mut raw).await.unwrap();
        let steps: Vec<String> = rows.iter().map(|row| sqlx::Row::get(row, "detail")).collect();
        let by_index = |step: &String| !step.starts_with("SCAN k") || step.contains("idem_key_open");
        assert!(steps.iter().all(by_index), "{steps:?} of {statement}");
    }
}
