//! How much goes through, with and without: a look for whoever changes this, not a benchmark.

use std::time::Instant;

use super::*;

const CALLERS: [usize; 4] = [1, 16, 64, 256];
const FOR: Duration = Duration::from_secs(2);

/// Prints calls per second: each is a claim and its completion, and then each is a replay.
pub(crate) async fn load(what: &str, store: Arc<dyn Store>) {
    println!("{what}: calls/s, median ms (alone, batched)");
    for callers in CALLERS {
        let (mut runs, mut replays) = (Vec::new(), Vec::new());
        for rows in [1, 128] {
            let store = around(Arc::clone(&store), Limits { rows, ..LIMITS }, TaskTracker::new());
            let store: &'static Arc<dyn Store> = Box::leak(Box::new(store)); // of a test
            runs.push(measure(callers, |_| run(&**store)).await);
            replays.push(measure(callers, |n| replay(&**store, n % 1_000)).await);
        }
        println!("{callers:4} callers: run {} replay {}", runs.join(" | "), replays.join(" | "));
    }
}

/// A thousand records that are done, for `load`.
pub(crate) async fn fill(store: &dyn Store) {
    let claims = claims(0..1_000);
    store.claim(&claims).await.unwrap();
    store.finish(&claims.iter().map(done).collect::<Vec<_>>()).await.unwrap();
}

async fn measure<F>(callers: usize, call: impl Fn(usize) -> F + Copy + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let until = Instant::now() + FOR;
    let caller = move |caller: usize| async move {
        let mut took = Vec::new();
        while Instant::now() < until {
            let began = Instant::now();
            tokio::spawn(call(caller * 7_919 + took.len())).await.unwrap(); // as the engine sends its claims
            took.push(began.elapsed());
        }
        took
    };
    let callers: Vec<_> = (0..callers).map(|n| tokio::spawn(caller(n))).collect();
    let mut took = Vec::new();
    for caller in callers {
        took.extend(caller.await.unwrap());
    }
    took.sort_unstable();
    format!("{:.0}/s {:.2}", took.len() as f64 / FOR.as_secs_f64(), took[took.len() / 2].as_secs_f64() * 1e3)
}

async fn run(store: &dyn Store) {
    let claim = claim(&fastrand::u128(..).to_string());
    found!(store.claim(std::slice::from_ref(&claim)).await.unwrap().remove(0), Claimed::Owner(_));
    store.finish(&[done(&claim)]).await.unwrap();
}

async fn replay(store: &dyn Store, n: usize) {
    found!(store.claim(&[claim(&n.to_string())]).await.unwrap().remove(0), Claimed::Found(Found::Replay(_)));
}
