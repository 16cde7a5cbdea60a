//! Failures, callers that leave, and a store that has too much to do.

use std::sync::atomic::Ordering;

use super::*;

/// The store reads one row that is damaged: it is that row's fault.
#[tokio::test(start_paused = true)]
async fn clause_46_a_row_that_is_refused_does_not_fail_its_neighbours() {
    let place = Place::new();
    *place.gated.refused.lock().unwrap() = Some((record("3"), StoreErrorKind::Corrupt));
    let asking = place.ask_all(&claims(0..6)).await;
    place.gated.open();
    for (n, asked) in asking.into_iter().enumerate() {
        match asked.await.unwrap() {
            Err(error) => assert_eq!((n, error.kind), (3, StoreErrorKind::Corrupt)),
            claimed => found!(claimed, Ok(Claimed::Owner(_)) if n != 3),
        }
    }
    assert_eq!(place.gated.sizes(), [1, 5, 1, 1, 1, 1, 1]);
}

/// It may have counted, so nobody is told that it did not, and each asks again as the same attempt.
#[tokio::test(start_paused = true)]
async fn clause_21_a_reply_that_is_lost_is_lost_for_all_of_the_statement() {
    let place = Place::new();
    let claims = claims(0..6);
    let asking = place.ask_all(&claims).await;
    place.gated.lost.store(2, Ordering::Relaxed);
    place.gated.open();
    for asked in asking {
        let error = asked.await.unwrap().unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::Unavailable);
        assert_eq!(format!("{error:?}"), "the store is unavailable: the test lost the reply");
    }
    assert_eq!(place.gated.sizes(), [1, 5], "nothing is sent again behind the callers' backs");
    owned(place.ask_all(&claims).await).await;
}

/// Without an answer, a statement is given up after `store_timeout`; the next one goes out long before that.
#[tokio::test(start_paused = true)]
async fn clause_21_a_statement_that_hangs_holds_up_nobody_else_for_long() {
    let place = Place::new();
    let asking = place.ask_all(&claims(0..3)).await;
    assert_eq!(place.gated.sizes(), [1]);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(place.gated.sizes(), [1, 2], "what waited has its own chance");
    tokio::time::sleep(Duration::from_millis(150)).await;
    let later = place.ask(&claim("later")).await;
    assert_eq!(place.gated.sizes(), [1, 2, 1]);
    let began = tokio::time::Instant::now();
    for asked in asking.into_iter().skip(1) {
        assert_eq!(asked.await.unwrap().unwrap_err().kind, StoreErrorKind::Unavailable);
    }
    assert!(began.elapsed() < LIMITS.store_timeout);
    place.gated.open();
    owned(vec![later]).await;
    place.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn clause_21_a_panic_of_the_store_reaches_all_who_asked_and_nobody_else() {
    let place = Place::new();
    let asking = place.ask_all(&claims(0..3)).await;
    place.gated.pass();
    settle().await;
    place.gated.panics.store(true, Ordering::Relaxed);
    let later = place.ask(&claim("later")).await;
    place.gated.open();
    let mut asking = asking.into_iter();
    owned(asking.next().into_iter().collect()).await;
    for asked in asking {
        assert!(asked.await.unwrap_err().is_panic());
    }
    owned(vec![later]).await;
    place.is_quiet().await;
    // And of a caller's own statement.
    place.gated.panics.store(true, Ordering::Relaxed);
    assert!(place.ask(&claim("alone")).await.await.unwrap_err().is_panic());
    owned(vec![place.ask(&claim("alone")).await]).await;
}

#[tokio::test(start_paused = true)]
async fn clause_20_a_caller_that_leaves_with_its_own_statement_lets_the_others_go() {
    let place = Place::new();
    let mut asking = place.ask_all(&claims(0..3)).await;
    asking.remove(0).abort();
    settle().await;
    assert_eq!(place.gated.sizes(), [1, 2]);
    place.gated.open();
    owned(asking).await;
    place.is_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn clause_20_a_caller_that_leaves_the_queue_is_not_sent() {
    let place = Place::new();
    let mut asking = place.ask_all(&claims(0..4)).await;
    asking.remove(2).abort();
    settle().await;
    place.gated.open();
    owned(asking).await;
    assert_eq!(place.gated.sizes(), [1, 2]);
    assert!(place.gated.inner.find(record("2")).await.unwrap().is_none());
    place.is_quiet().await;
}

/// Its claim may have counted, and it is told so when it asks again.
#[tokio::test(start_paused = true)]
async fn clause_20_a_caller_that_leaves_while_its_statement_is_on_its_way_takes_nobody_along() {
    let place = Place::new();
    let claims = claims(0..4);
    let mut asking = place.ask_all(&claims).await;
    place.gated.pass();
    settle().await;
    assert_eq!(place.gated.sizes(), [1, 3]);
    asking.remove(2).abort();
    settle().await;
    place.gated.open();
    owned(asking).await;
    assert!(place.gated.inner.find(record("2")).await.unwrap().is_some());
    owned(vec![place.ask(&claims[2]).await]).await;
    place.is_quiet().await;
}

/// Nobody waits for it when its turn comes, and there is no room for what nobody waits for.
#[tokio::test(start_paused = true)]
async fn clause_21_the_queue_is_bounded_and_who_has_left_takes_no_place() {
    let place = Place::with(Limits { queue: 3, ..LIMITS });
    let mut asking = place.ask_all(&claims(0..4)).await;
    let refused = place.ask(&claim("one too many")).await.await.unwrap().unwrap_err();
    assert_eq!(refused.kind, StoreErrorKind::Overloaded);
    asking.remove(1).abort();
    settle().await;
    asking.push(place.ask(&claim("in its place")).await);
    let refused = place.ask(&claim("one too many")).await.await.unwrap().unwrap_err();
    assert_eq!(refused.kind, StoreErrorKind::Overloaded);
    place.gated.open();
    owned(asking).await;
    assert_eq!(place.gated.sizes(), [1, 3]);
    assert!(place.gated.inner.find(record("one too many")).await.unwrap().is_none(), "it was not sent");
}

/// A runtime that ends takes its tasks along; whoever waits elsewhere is told.
#[test]
fn clause_20_nobody_waits_for_a_runtime_that_is_gone() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (here, gone) = (runtime(), runtime());
    let place = gone.block_on(async { Place::new() });
    let asking = here.block_on(place.ask_all(&claims(0..3)));
    drop(gone);
    here.block_on(async {
        place.gated.pass();
        for (n, asked) in asking.into_iter().enumerate() {
            match asked.await.unwrap() {
                Ok(claimed) => found!(claimed, Claimed::Owner(_) if n == 0),
                Err(error) => assert_eq!((error.kind, n > 0), (StoreErrorKind::Unavailable, true)),
            }
        }
    });
}

#[tokio::test(start_paused = true)]
async fn clause_21_no_more_wait_to_begin_a_transaction_than_may() {
    let place = Place::with(Limits { queue: 2, ..LIMITS });
    place.gated.one_writer.store(true, Ordering::Relaxed); // whose looks are not held up
    let done = claim("done");
    place.gated.inner.claim(std::slice::from_ref(&done)).await.unwrap();
    let begin = |key: &str| {
        let begin = Begin { claim: Some(claim(key)), limit: Duration::from_secs(5), savepoint: false, order: None };
        let store = Arc::clone(&place.store);
        tokio::spawn(async move { store.begin(&begin).await.map_err(|error| error.kind) })
    };
    let waiting = [begin("a"), begin("b")];
    settle().await;
    assert_eq!(begin("c").await.unwrap().unwrap_err(), StoreErrorKind::Overloaded);
    let replayed = begin("done").await.unwrap().unwrap();
    assert!(matches!(replayed, Begun::Found(Found::InFlight { .. })), "{replayed:?}"); // it needs none
    let [first, second] = waiting;
    first.abort(); // who leaves makes room
    settle().await;
    let third = begin("c");
    place.gated.open();
    for asked in [second, third] {
        assert_eq!(asked.await.unwrap().unwrap_err(), StoreErrorKind::Unavailable, "it was asked");
    }
}
