//! The provider: it has the effects, outside of the database and of every process that is killed. Its books are
//! append-only.

use std::{
    collections::HashMap,
    fs::File,
    io::Write,
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::{self, State},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle};

use super::log::{Effect, Key};

/// Ends when dropped.
pub(crate) struct Provider {
    pub(crate) url: String,
    books: Books,
    server: JoinHandle<()>,
}

#[derive(Clone)]
struct Books(Arc<Mutex<Written>>);

struct Written {
    /// What can be read when a run has failed.
    file: File,
    runs: Vec<Key>,
    counts: HashMap<Key, u32>,
    effects: Vec<Effect>,
    by_provider_key: HashMap<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    mode: String,
    key: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Act {
    mode: String,
    key: String,
    provider_key: String,
    step: String,
    /// What is told about it; `nonce` says by which run it was done.
    answer: Value,
}

const SLOWEST: u64 = 4;

impl Provider {
    /// Writes its books to this file too.
    pub(crate) async fn open(file: &Path) -> Self {
        let written = Written {
            file: File::create(file).unwrap(),
            runs: Vec::new(),
            counts: HashMap::new(),
            effects: Vec::new(),
            by_provider_key: HashMap::new(),
        };
        let books = Books(Arc::new(Mutex::new(written)));
        let router = Router::new()
            .route("/runs", post(begin))
            .route("/effects", post(act))
            .route("/effects/{provider_key}", get(find))
            .with_state(books.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, books, server }
    }

    /// Bodies that have begun, and what was done.
    pub(crate) fn read(&self) -> (Vec<Key>, Vec<Effect>) {
        let books = self.books.written();
        (books.runs.clone(), books.effects.clone())
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Books {
    fn written(&self) -> MutexGuard<'_, Written> {
        self.0.lock().unwrap()
    }
}

/// Says which run of its key this is, from 1.
async fn begin(State(books): State<Books>, Json(begun): Json<Begun>) -> Json<u32> {
    let key = Key::of(&begun.mode, &begun.key);
    let mut books = books.written();
    writeln!(books.file, "run {}", serde_json::to_string(&begun).unwrap()).unwrap();
    books.runs.push(key);
    let count = books.counts.entry(key).or_default();
    *count += 1;
    Json(*count)
}

/// Takes its time before and after.
async fn act(State(books): State<Books>, Json(act): Json<Act>) -> Json<Value> {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..SLOWEST))).await;
    let told = books.written().act(act);
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..SLOWEST))).await;
    Json(told)
}

impl Written {
    /// The first answer, where it dedupes.
    fn act(&mut self, act: Act) -> Value {
        writeln!(self.file, "effect {}", serde_json::to_string(&act).unwrap()).unwrap();
        let key = Key::of(&act.mode, &act.key);
        if key.mode.is_deduped()
            && let Some(first) = self.by_provider_key.get(&act.provider_key)
        {
            return first.clone();
        }
        let nonce = act.answer["nonce"].as_str().unwrap().to_owned();
        self.effects.push(Effect { key, step: act.step, nonce });
        self.by_provider_key.insert(act.provider_key, act.answer.clone());
        act.answer
    }
}

async fn find(State(books): State<Books>, extract::Path(by): extract::Path<String>) -> Json<Option<Value>> {
    tokio::time::sleep(Duration::from_millis(fastrand::u64(0..SLOWEST))).await;
    Json(books.written().by_provider_key.get(&by).cloned())
}
