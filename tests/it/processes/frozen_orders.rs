//! Scenario 46: a process that is frozen in the middle of an order's transaction, and thaws.

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::{TRIES, refused, settled};
use crate::support::{
    Backend, Seen, eventually,
    process::{Disk, Payments},
    seen,
};

/// From now on an order is held after its insert for as long as the test has this lock; its session may then be silent
/// for a moment only, and not for the 10 s that it was told when it began.
const HELD_ON_A_SERVER: &str = "
    create function held() returns trigger language plpgsql as $$
    begin
        if current_setting('idle_in_transaction_session_timeout') <> '10s' then
            raise 'the session may be silent for %', current_setting('idle_in_transaction_session_timeout');
        end if;
        perform set_config('idle_in_transaction_session_timeout', '300ms', true);
        perform pg_advisory_xact_lock(1);
        return null;
    end $$;
    create trigger held after insert on orders for each row execute function held();
    select pg_advisory_lock(1)";

/// A few seconds of work, since nothing else keeps SQLite inside of a statement.
const HELD_IN_A_FILE: &str = "
    create table hold as with recursive n(i) as (select 1 union all select i + 1 from n where i < 220) select i from n;
    create trigger held after insert on orders begin
        select sum(a.i * b.i * c.i) from hold a, hold b, hold c;
    end";

fn book() -> Value {
    json!({"sku": "book", "quantity": 1})
}

async fn both_replay(both: [&Payments; 2], key: &str, answer: &Seen) {
    for payments in both {
        let again = payments.pay("/orders", key, &book()).await;
        assert_eq!((again.status, again.replayed, &again.body), (201, true, &answer.body));
    }
}

/// How many there are, and what they have taken from the stock.
async fn orders(disk: &Disk) -> (i64, i64) {
    let taken = disk.count("select cast(1000000 - quantity as bigint) from stock where sku = 'book'").await;
    (disk.count("select count(*) from orders").await, taken)
}

#[tokio::test]
async fn scenario_46_an_order_that_is_frozen_holds_its_key_until_its_session_ends() {
    let disk = Disk::new().await;
    let (payments, other) = (disk.start().await, disk.start().await);
    if disk.backend() == Backend::Sqlite {
        frozen_with_the_file(&disk, &payments, &other).await;
    } else {
        frozen_with_a_session(&disk, &payments, &other).await;
    }
}

async fn frozen_with_a_session(disk: &Disk, payments: &Payments, other: &Payments) {
    disk.sql(HELD_ON_A_SERVER).await;
    let caller = payments.pay_meanwhile("/orders", "k1", &book());
    disk.somebody_is_held().await;
    payments.signal(Signal::STOP);
    let told = refused(other, "/orders", "k1", &book()).await;
    assert_eq!((told.status, told.slug.as_str(), told.retry_after), (409, "idempotency-in-progress", Some(1)));

    disk.sql("select pg_advisory_unlock(1)").await;
    let second = std::sync::Mutex::new(None);
    eventually(async || {
        let answer = other.post("/orders", "k1", &book()).send().await.unwrap();
        if answer.status() == 409 {
            return false; // its session is still there
        }
        *second.lock().unwrap() = Some(seen(answer).await);
        true
    })
    .await;
    let second = second.into_inner().unwrap().unwrap();
    assert!(second.ran(), "{second:?}");

    payments.signal(Signal::CONT);
    let first = caller.await.unwrap().unwrap();
    assert_eq!((first.status, first.replayed, &first.body), (201, true, &second.body));
    both_replay([payments, other], "k1", &second).await;
    assert_eq!(orders(disk).await, (1, 1));
}

/// Here nobody else can end it, and nobody else can write. An order may be over before it is frozen: then, another.
async fn frozen_with_the_file(disk: &Disk, payments: &Payments, other: &Payments) {
    disk.sql(HELD_IN_A_FILE).await;
    for placed in 0..i64::from(TRIES) {
        let key = format!("k{placed}");
        let caller = payments.pay_meanwhile("/orders", &key, &book());
        eventually(async || caller.is_finished() || disk.is_locked().await).await;
        payments.signal(Signal::STOP);
        if disk.is_locked().await {
            thaws_with_the_file(disk, [payments, other], &key, caller).await;
            assert_eq!(orders(disk).await, (placed + 1, placed + 1));
            return;
        }
        payments.signal(Signal::CONT);
        assert!(caller.await.unwrap().unwrap().ran());
    }
    panic!("every order was over before it was frozen");
}

async fn thaws_with_the_file(disk: &Disk, both: [&Payments; 2], key: &str, caller: JoinHandle<Option<Seen>>) {
    let ([payments, other], book) = (both, book());
    let (told, another) =
        tokio::join!(refused(other, "/orders", key, &book), refused(other, "/orders", "another", &book));
    for told in [told, another] {
        assert_eq!((told.status, told.slug.as_str()), (503, "idempotency-store-unavailable"));
    }
    payments.signal(Signal::CONT);
    let first = caller.await.unwrap().unwrap();
    eventually(async || !disk.is_locked().await).await;
    disk.sql("drop trigger held").await;
    let second = settled(other, "/orders", key, &book).await;
    // It was away for longer than a transaction may take, so either its end or its time-out is seen first.
    match first.status {
        201 => assert_eq!((second.replayed, &second.body), (true, &first.body)),
        504 => assert!(first.body.contains("#idempotency-body-timeout"), "{first:?}"),
        _ => panic!("{first:?}"),
    }
    both_replay(both, key, &second).await;
}
