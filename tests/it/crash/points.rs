//! A signup of five steps, whose process is killed before and after every single statement.

use std::{collections::BTreeMap, path::Path, process::Stdio, time::Duration};

use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use super::{
    fleet::{LISTENS, binary},
    log::{Key, Mode, STEPS},
    plan::{LEASE, Mix},
    provider::Provider,
    run::ROWS,
};
use crate::support::{Backend, Place, seen};

/// A server that kills itself at this moment; 0: never.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    async fn start(place: &Place, provider: &Provider, folder: &Path, dies_at: u32) -> Self {
        let mut command = Command::new(binary());
        if place.backend() == Backend::PgBouncer {
            command.env("DATABASE_POOLER", "transaction");
        }
        let mut child = command
            .env("DATABASE_URL", place.url())
            .env("PROVIDER", &provider.url)
            .env("SEED", "1")
            .env("MIX", Mix::Well.name())
            .env("DIES_AT", dies_at.to_string())
            .current_dir(folder)
            .stdin(Stdio::piped()) // at whose end it ends
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await.unwrap().unwrap().unwrap();
        Self { child, url: format!("http://{}/resumable", line.strip_prefix(LISTENS).unwrap()) }
    }

    fn request(&self, client: &reqwest::Client, key: Key) -> reqwest::RequestBuilder {
        let text = key.text();
        client.post(&self.url).header("idempotency-key", &text).json(&json!({ "key": text }))
    }
}

/// How often each step of this key has had its effect.
async fn effects(place: &Place, provider: &Provider, key: Key) -> BTreeMap<String, usize> {
    let rows = sqlx::query_as("select step from crash_rows where nr = $1").bind(key.text());
    let rows: Vec<(String,)> = rows.fetch_all(place.database().await).await.unwrap();
    let outside = provider.read().1.into_iter().filter(|effect| effect.key == key).map(|effect| effect.step);
    let mut counts = BTreeMap::new();
    for step in rows.into_iter().map(|(step,)| step).chain(outside) {
        *counts.entry(step).or_default() += 1;
    }
    counts
}

#[tokio::test]
async fn scenario_80_killed_at_every_statement_a_signup_has_each_effect_once() {
    let (place, folder) = (Place::for_programs().await, TempDir::new().unwrap());
    place.migrate().await;
    place.sql(ROWS).await;
    if place.backend() != Backend::Sqlite {
        place.sql("alter table crash_rows set schema public").await;
    }
    let provider = Provider::open(&folder.path().join("provider.log")).await;
    let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(20)).build().unwrap();
    let survivor = Server::start(&place, &provider, folder.path(), 0).await;
    let once: BTreeMap<String, usize> = STEPS.iter().map(|step| ((*step).to_owned(), 1)).collect();
    let mut survived = None;
    for moment in 1..200 {
        let key = Key { mode: Mode::Resumable, nr: moment.into() };
        let mut server = Server::start(&place, &provider, folder.path(), moment).await;
        if let Ok(answer) = server.request(&client, key).send().await {
            assert_eq!(answer.status(), 201);
            survived = Some(moment - 1);
            break;
        }
        server.child.wait().await.unwrap();
        let mut told = None;
        for _ in 0..100 {
            place.pass(LEASE * 2).await; // for the lease that nobody renews any more
            let answer = seen(survivor.request(&client, key).send().await.unwrap()).await;
            if answer.status == 201 {
                told = Some(answer);
                break;
            }
            assert!(matches!(answer.status, 409 | 503), "moment {moment}: {answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await; // between two tries
        }
        let told = told.unwrap_or_else(|| panic!("moment {moment}: no answer"));
        assert_eq!(effects(&place, &provider, key).await, once, "moment {moment}");
        let again = seen(survivor.request(&client, key).send().await.unwrap()).await;
        assert_eq!((again.replayed, again.body), (true, told.body), "moment {moment}");
    }
    let moments = survived.expect("more moments than a signup can have");
    println!("killed at {moments} moments, before and after each of {} statements", moments / 2);
    assert!(moments >= 24, "only {moments}");
}
