//! Many tasks on one store.
//!
//! Each case goes through several rounds, each with a record of its own, so that a store that is right by luck is not
//! lucky for long. They find more on a runtime of several threads.

use futures_util::future::join_all;
use tokio::task::JoinHandle;

use super::{steps::*, *};

const ROUNDS: usize = 8;
const TASKS: usize = 12;

/// Runs `work` on a task of its own.
fn spawn<T, F>(store: &Arc<dyn Store>, work: impl FnOnce(Arc<dyn Store>) -> F) -> JoinHandle<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    tokio::spawn(work(Arc::clone(store)))
}

/// What all tasks gave. A task that panicked fails the case.
async fn all<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    join_all(tasks).await.into_iter().map(|ended| ended.expect("a task of the case ran to its end")).collect()
}

/// Sends every claim from a task of its own.
fn claim_each(store: &Arc<dyn Store>, claims: &[Claim]) -> Vec<JoinHandle<Claimed>> {
    let one = |claim: &Claim| {
        let claim = claim.clone();
        spawn(store, |store| async move { claim_one(&store, &claim).await })
    };
    claims.iter().map(one).collect()
}

fn finish_on_a_task(store: &Arc<dyn Store>, claim: &Claim, outcome: Outcome) -> JoinHandle<Finished> {
    let claim = claim.clone();
    spawn(store, |store| async move { finish(&store, &claim, outcome).await })
}

fn resolve_on_a_task(store: &Arc<dyn Store>, key: &str, seen: Fence, to: Resolution) -> JoinHandle<bool> {
    let key = String::from(key);
    spawn(store, |store| async move { resolve(&store, &key, seen, to).await })
}

/// Starts both, the second one first in every other round.
fn in_turn<A, B>(round: usize, first: impl FnOnce() -> A, second: impl FnOnce() -> B) -> (A, B) {
    if round.is_multiple_of(2) {
        return (first(), second());
    }
    let second = second();
    (first(), second)
}

fn claims_of(key: &str) -> Vec<Claim> {
    (0..TASKS).map(|_| claim(key)).collect()
}

/// One claim won, the record is its attempt's, and the others were told so.
async fn one_won(store: &dyn Store, claims: &[Claim], claimed: &[Claimed]) {
    let winners: Vec<_> = claims.iter().zip(claimed).filter(|(_, claimed)| is_owner(claimed)).collect();
    assert_eq!(winners.len(), 1, "one owner: {claimed:?}");
    assert_eq!(claimed.iter().filter(|claimed| is_in_flight(claimed)).count(), claims.len() - 1, "{claimed:?}");
    let found = store.find(claims[0].record).await.unwrap().unwrap();
    assert_eq!(found.attempt, winners[0].0.attempt);
}

/// Of many claims of a new record one owns it; catches a store that looks and takes in two steps.
pub async fn one_of_many_claims_wins(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let claims = claims_of(&round.to_string());
        let claimed = all(claim_each(&store, &claims)).await;
        one_won(&store, &claims, &claimed).await;
    }
}

/// Of many claims of a released record one owns it; catches a store that inserts in one step but overwrites in two.
pub async fn one_of_many_takes_a_released_record(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let key = round.to_string();
        run(&store, &key, Outcome::Released(Reason::Status)).await;
        let claims = claims_of(&key);
        let claimed = all(claim_each(&store, &claims)).await;
        one_won(&store, &claims, &claimed).await;
        assert_eq!(find(&store, &key).await.attempts, 2);
    }
}

/// Slices that name the same records in different orders grant each of them once, and none fails; catches a store that
/// locks in the order of the slice, or takes in two steps.
pub async fn slices_share_their_records_between_them(store: Arc<dyn Store>) {
    const KEYS: usize = 20;
    for round in 0..ROUNDS {
        let slice = |turn: usize| -> Vec<Claim> {
            let mut claims: Vec<Claim> = (0..KEYS).map(|key| claim(&format!("{round}-{key}"))).collect();
            claims.rotate_left(turn * KEYS / 4);
            if turn % 2 == 1 {
                claims.reverse();
            }
            claims
        };
        let one = |turn| {
            let claims = slice(turn);
            spawn(&store, |store| async move { store.claim(&claims).await.unwrap() })
        };
        let claimed = all((0..4).map(one)).await;
        assert!(claimed.iter().all(|claimed| claimed.len() == KEYS));
        assert_eq!(claimed.iter().flatten().filter(|claimed| is_owner(claimed)).count(), KEYS, "each once");
    }
}

/// A retry and a peek that arrive while an answer is stored find the run or the whole answer; catches a store that
/// writes the state before the answer.
pub async fn a_retry_meets_the_run_or_its_whole_answer(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let owner = claim(&round.to_string());
        own(&store, &owner).await;
        let ask = |n: usize| {
            let retry = claim(&round.to_string());
            spawn(&store, move |store| async move {
                if n.is_multiple_of(2) {
                    return claim_one(&store, &retry).await;
                }
                let mut found = store.peek(&[retry.peek()]).await.unwrap();
                Claimed::Found(found.remove(0).expect("a peek never finds it free"))
            })
        };
        let before: Vec<_> = (0..TASKS / 2).map(ask).collect();
        let end = finish_on_a_task(&store, &owner, Outcome::Done(reply("x")));
        let after: Vec<_> = (0..TASKS / 2).map(ask).collect();
        for claimed in all(before.into_iter().chain(after)).await {
            match claimed {
                Claimed::Found(Found::InFlight { .. }) => {}
                Claimed::Found(Found::Replay(replay)) => assert_eq!(replay.response, reply("x")),
                other => panic!("neither the run nor its answer: {other:?}"),
            }
        }
        found!(end.await.unwrap(), Finished::Stored { .. });
    }
}

/// Of an attempt that was released and the one that runs now, the latter's end counts; catches a completion that is not
/// fenced.
pub async fn one_of_two_attempts_ends_the_run(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let key = round.to_string();
        let (zombie, seen) = doubt(&store, &key).await;
        assert!(resolve(&store, &key, seen, Resolution::Release).await);
        let owner = claim(&key);
        let late = finish_on_a_task(&store, &zombie, Outcome::Done(reply("zombie")));
        let owned = spawn(&store, |store| async move {
            own(&store, &owner).await;
            tokio::task::yield_now().await;
            finish(&store, &owner, Outcome::Done(reply("owner"))).await
        });
        let later = finish_on_a_task(&store, &zombie, Outcome::Released(Reason::Status));
        assert_eq!(all([late, later]).await, [Finished::Lost; 2]);
        found!(owned.await.unwrap(), Finished::Stored { .. });
        found!(retry(&store, &key).await, Claimed::Found(Found::Replay(replay)) if replay.response == reply("owner"));
    }
}

/// Of two ends that one attempt sends at once, one counts; catches a store that compares and writes in two steps.
pub async fn one_of_two_ends_by_one_attempt_counts(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let key = round.to_string();
        let owner = claim(&key);
        own(&store, &owner).await;
        let done = || finish_on_a_task(&store, &owner, Outcome::Done(reply("done")));
        let rejected = || finish_on_a_task(&store, &owner, Outcome::Rejected(reply("rejected"), LEASE));
        let (done, rejected) = in_turn(round, done, rejected);
        let (done, rejected) = (done.await.unwrap(), rejected.await.unwrap());
        let (state, body) = match (done, rejected) {
            (Finished::Stored { .. }, Finished::Lost) => (State::Done, "done"),
            (Finished::Lost, Finished::Stored { .. }) => (State::Rejected, "rejected"),
            other => panic!("one of two: {other:?}"),
        };
        assert_eq!(find(&store, &key).await.state, state);
        found!(retry(&store, &key).await, Claimed::Found(Found::Replay(replay)) if replay.response == reply(body));
    }
}

/// A lease that has ended is renewed or taken over, never both; catches a renewal or a take-over that compares before
/// it writes.
pub async fn a_lease_is_renewed_or_taken_over(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let (first, claims) = silent(&store, round).await;
        let renewal = Renewal { record: first.record, attempt: first.attempt };
        let renew = || spawn(&store, |store| async move { store.renew(&[renewal], LEASE).await.unwrap().remove(0) });
        let (renewed, taken) = in_turn(round, renew, || claim_each(&store, &claims));
        let (renewed, claimed) = (renewed.await.unwrap(), all(taken).await);
        match renewed {
            Renewed::Held => {
                assert!(claimed.iter().all(is_in_flight), "renewed: {claimed:?}");
                assert_eq!(store.find(first.record).await.unwrap().unwrap().attempt, first.attempt);
            }
            Renewed::Lost | Renewed::Busy => one_won(&store, &claims, &claimed).await,
        }
    }
}

/// A run whose lease has ended is ended by its late owner or taken over, never both; catches a completion or a
/// take-over that compares before it writes.
pub async fn a_late_owner_ends_its_run_or_is_taken_over(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let (first, claims) = silent(&store, round).await;
        let end = || finish_on_a_task(&store, &first, Outcome::Done(reply("late")));
        let (finished, taken) = in_turn(round, end, || claim_each(&store, &claims));
        let (finished, claimed) = (finished.await.unwrap(), all(taken).await);
        if finished == Finished::Lost {
            one_won(&store, &claims, &claimed).await;
            continue;
        }
        for claimed in claimed {
            found!(claimed, Claimed::Found(Found::Replay(replay)) if replay.response == reply("late"));
        }
    }
}

/// A run whose lease was over at once, and claims that may take over.
async fn silent(store: &dyn Store, round: usize) -> (Claim, Vec<Claim>) {
    let key = round.to_string();
    let first = Claim { lease: Duration::ZERO, ..rerunnable(&key) };
    own(store, &first).await;
    (first, claims_of(&key).into_iter().map(|claim| Claim { rerun: WINDOW, ..claim }).collect())
}

/// A doubt is settled by its late owner or by an operator, never by both; catches a decision that compares the fence
/// before it writes, or that leaves the old attempt able to.
pub async fn an_operator_or_the_owner_settles_a_doubt(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let key = round.to_string();
        let (owner, seen) = doubt(&store, &key).await;
        let decide = || resolve_on_a_task(&store, &key, seen, Resolution::Complete(reply("operator")));
        let end = || finish_on_a_task(&store, &owner, Outcome::Done(reply("owner")));
        let (decision, late) = in_turn(round, decide, end);
        let body = match (decision.await.unwrap(), late.await.unwrap()) {
            (true, Finished::Lost) => "operator",
            (false, Finished::Stored { .. }) => "owner",
            other => panic!("one of two: {other:?}"),
        };
        found!(retry(&store, &key).await, Claimed::Found(Found::Replay(replay)) if replay.response == reply(body));
    }
}

/// Of two operators who saw the same fence one decides; catches a decision that compares the fence before it writes.
pub async fn one_of_two_operators_decides(store: Arc<dyn Store>) {
    for round in 0..ROUNDS {
        let key = round.to_string();
        let (_, seen) = doubt(&store, &key).await;
        let complete = || resolve_on_a_task(&store, &key, seen, Resolution::Complete(reply("x")));
        let release = || resolve_on_a_task(&store, &key, seen, Resolution::Release);
        let (complete, release) = in_turn(round, complete, release);
        let (complete, release) = (complete.await.unwrap(), release.await.unwrap());
        assert!(complete != release, "one of two: completed {complete}, released {release}");
        let state = if complete { State::Done } else { State::Released };
        assert_eq!(find(&store, &key).await.state, state);
    }
}
