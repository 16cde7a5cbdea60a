//! What the verbs cost the server, on one of its own where nobody else writes.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{server::Server, *};
use crate::{
    conformance::{
        recorded::{end_of, start_of},
        steps::{GUARD, LEASE, claim, finish, found, own, payload, reply, retry, run},
    },
    state::Reason,
    store::{Claim, Claimed, Finish, Finished, Found, Outcome, Renewal, Store},
};

/// Without what the server writes by itself.
const QUIET: [&str; 3] = ["autovacuum=off", "wal_level=minimal", "max_wal_senders=0"];

#[tokio::test]
async fn replays_and_refusals_write_no_wal() {
    let server = Server::start(&QUIET);
    let place = Place::on(&server.url);
    for store in [place.migrated().await, place.store().with_simple_protocol()] {
        let name = |what: &str| format!("{what}-{:?}", store.protocol);
        run(&store, &name("expired"), Outcome::Done(reply("x"))).await;
        place.pass(Duration::from_secs(25 * 3600)).await;
        let owner = claim(&name("in-flight"));
        own(&store, &owner).await;
        run(&store, &name("done"), Outcome::Done(reply("x"))).await;
        run(&store, &name("in-doubt"), Outcome::InDoubt(Reason::Panic)).await;
        let claims = || {
            let mismatch = Claim { fingerprint: payload(2), ..claim(&name("done")) };
            let [done, in_flight] = [claim(&name("done")), claim(&name("in-flight"))];
            let [in_doubt, expired] = [claim(&name("in-doubt")), claim(&name("expired"))];
            [[owner.clone(), done, in_doubt], [in_flight, expired, mismatch]]
        };
        let mut raw = place.raw().await;
        let mut written = Vec::new();
        for replays in [3, 200] {
            // The first reads clean up the pages that the writes before them left, which is written.
            let before = number(&mut raw, "select (pg_current_wal_insert_lsn() - '0/0')::int8").await;
            for _ in 0..replays {
                let [one, two] = claims();
                found!(
                    store.claim(&one).await.unwrap().as_slice(),
                    [Claimed::Owner(_), Claimed::Found(Found::Replay(_)), Claimed::Found(Found::InDoubt(_))]
                );
                let found = store.claim(&two).await.unwrap();
                found!(
                    found.as_slice(),
                    [
                        Claimed::Found(Found::InFlight { .. }),
                        Claimed::Found(Found::Expired),
                        Claimed::Found(Found::Mismatch)
                    ]
                );
                store.peek(&one.map(|claim| claim.peek())).await.unwrap();
            }
            written.push(number(&mut raw, "select (pg_current_wal_insert_lsn() - '0/0')::int8").await - before);
        }
        assert_eq!(written[1], 0, "{written:?}");
    }
}

#[tokio::test]
async fn every_verb_is_one_statement_and_one_round_trip() {
    let place = Place::new();
    place.migrated().await;
    let proxy = Proxy::start(&place.options).await;
    let prepared = place.store_with(place.options.clone().port(proxy.port)).with_connections(1);
    for (store, commands) in [(prepared.clone(), 1), (prepared.with_simple_protocol(), 6)] {
        for warm in [false, true] {
            let claims: Vec<Claim> = (0..20).map(|n| claim(&format!("{n}-{warm}-{:?}", store.protocol))).collect();
            let finishes: Vec<Finish> = claims
                .iter()
                .map(|claim| Finish {
                    record: claim.record,
                    attempt: claim.attempt,
                    outcome: Outcome::Done(reply("x")),
                })
                .collect();
            let renewals: Vec<Renewal> =
                claims.iter().map(|claim| Renewal { record: claim.record, attempt: claim.attempt }).collect();
            let peeks: Vec<_> = claims.iter().map(Claim::peek).collect();
            let starts: Vec<_> = claims.iter().map(|claim| start_of(claim, "pay")).collect();
            let ends: Vec<_> = claims.iter().map(|claim| end_of(claim, "pay", "x")).collect();
            let mut counts = Vec::new();
            macro_rules! count {
                ($verb:expr) => {
                    proxy.take();
                    $verb.await.unwrap();
                    counts.push(proxy.take());
                };
            }
            count!(store.claim(&claims));
            count!(store.claim(&claims));
            count!(store.peek(&peeks));
            count!(store.renew(&renewals, LEASE));
            count!(store.start_steps(&starts));
            count!(store.end_steps(&ends));
            count!(store.steps(claims[0].record));
            count!(store.finish(&finishes));
            count!(store.claim(&claims));
            count!(store.find(claims[0].record));
            if warm {
                assert_eq!(counts, [(commands, 1); 10], "(commands, ready)");
            }
        }
    }
}

/// The first statement inserts what is new; what is there and may be taken goes into a second one, whatever their number.
#[tokio::test]
async fn to_take_over_is_one_statement_more() {
    let place = Place::new();
    place.migrated().await;
    let proxy = Proxy::start(&place.options).await;
    let store = place.store_with(place.options.clone().port(proxy.port)).with_connections(1);
    let released: Vec<Claim> = (0..20).map(|n| claim(&n.to_string())).collect();
    for warm in [false, true] {
        for claim in &released {
            own(&store, claim).await;
            found!(finish(&store, claim, Outcome::Released(Reason::Status)).await, Finished::Stored { .. });
        }
        let mut claims: Vec<Claim> = (0..20).map(|n| claim(&n.to_string())).collect();
        claims.push(claim(&format!("new, {warm}")));
        proxy.take();
        let claimed = store.claim(&claims).await.unwrap();
        let (statements, _) = proxy.take();
        assert!(claimed.iter().all(|claimed| matches!(claimed, Claimed::Owner(_))), "{claimed:?}");
        assert_eq!(statements, 2);
        for claim in &claims {
            found!(finish(&store, claim, Outcome::Released(Reason::Status)).await, Finished::Stored { .. });
        }
    }
}

#[tokio::test]
async fn nothing_is_scanned_when_the_tables_have_grown() {
    let place = Place::new();
    let store = place.migrated().await.with_connections(1);
    place.execute("alter index idem_key_created set (autosummarize = off)").await; // it scans, at the server's leisure
    let one = claim("prepared while the tables are empty");
    own(&store, &one).await;
    found!(finish(&store, &one, Outcome::Done(reply("x"))).await, Finished::Stored { .. });
    place
        .execute(
            "insert into idem_key (kid, scope, op, state, fence, epoch, attempt, fp_alg, fp, lease_until, created_at, expires_at, guard_until)
             select gen_random_uuid(), 'acme', 'charge', 2, 1, 1, gen_random_uuid(), 1, '', now(), now(), now() + '1 day', now() + '2 days'
               from generate_series(1, 50000)",
        )
        .await;
    for round in 0..25 {
        let claims: Vec<Claim> = (0..40).map(|n| claim(&format!("{round}-{n}"))).collect();
        store.claim(&claims).await.unwrap();
        let starts: Vec<_> = claims.iter().map(|claim| start_of(claim, "pay")).collect();
        store.start_steps(&starts).await.unwrap();
        let ends: Vec<_> = claims.iter().map(|claim| end_of(claim, "pay", "x")).collect();
        store.end_steps(&ends).await.unwrap();
        store.steps(claims[0].record).await.unwrap();
        let finishes: Vec<Finish> = claims
            .iter()
            .map(|claim| Finish { record: claim.record, attempt: claim.attempt, outcome: Outcome::Done(reply("x")) })
            .collect();
        store.finish(&finishes).await.unwrap();
        let renewals: Vec<Renewal> =
            claims.iter().map(|claim| Renewal { record: claim.record, attempt: claim.attempt }).collect();
        store.renew(&renewals, LEASE).await.unwrap();
        store.peek(&claims.iter().map(Claim::peek).collect::<Vec<_>>()).await.unwrap();
    }
    found!(retry(&store, "0-0").await, Claimed::Found(Found::Replay(_)));
    drop(store); // its session's counters are added up when it ends
    let mut raw = place.raw().await;
    const UPDATES: &str = "select n_tup_upd from pg_stat_user_tables where relid = 'idem_key'::regclass";
    for _ in 0..100 {
        if number(&mut raw, UPDATES).await >= 1_001 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(number(&mut raw, UPDATES).await, 1_001);
    let steps =
        "select n_tup_hot_upd from pg_stat_user_tables where relid = 'idem_step'::regclass and n_tup_upd = 1000";
    let hot = number(&mut raw, steps).await;
    assert!(hot >= 950, "{hot} of 1000 results");
    // By building the indexes.
    const SCANS: &str = "select sum(seq_scan)::int8 from pg_stat_user_tables where schemaname = current_schema
                            and relname in ('idem_key', 'idem_link', 'idem_step')";
    assert_eq!(number(&mut raw, SCANS).await, 6);
}

/// Or each renewal of the new run would write it again.
#[tokio::test]
async fn a_claim_that_starts_afresh_takes_out_the_answer_before() {
    let place = Place::new();
    let store = place.migrated().await;
    run(&store, "a", Outcome::Done(reply("x"))).await;
    const ANSWERS: &str = "select count(*) from idem_key where num_nonnulls(status, headers, body) > 0";
    assert_eq!(place.number(ANSWERS).await, 1);
    place.pass(GUARD * 2).await;
    own(&store, &claim("a")).await;
    assert_eq!(place.number(ANSWERS).await, 0);
}

/// Stands between store and server, and counts.
struct Proxy {
    port: u16,
    /// Commands that were completed.
    commands: Arc<AtomicUsize>,
    /// "Ready for the next": ends of round trips.
    ready: Arc<AtomicUsize>,
}

impl Proxy {
    async fn start(options: &PgConnectOptions) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (commands, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let counters = (Arc::clone(&commands), Arc::clone(&ready));
        let server = (String::from(options.get_host()), options.get_port());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(server.clone()).await.unwrap();
                let counters = counters.clone();
                tokio::spawn(async move {
                    let (mut requests, mut client) = client.into_split();
                    let (mut server, mut forward) = server.into_split();
                    tokio::spawn(async move { tokio::io::copy(&mut requests, &mut forward).await });
                    let mut head = [0; 5];
                    while server.read_exact(&mut head).await.is_ok() {
                        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4;
                        let mut message = vec![0; length];
                        server.read_exact(&mut message).await.unwrap();
                        match head[0] {
                            b'C' => counters.0.fetch_add(1, Ordering::Relaxed),
                            b'Z' => counters.1.fetch_add(1, Ordering::Relaxed),
                            _ => 0,
                        };
                        client.write_all(&head).await.unwrap();
                        client.write_all(&message).await.unwrap();
                    }
                });
            }
        });
        Self { port, commands, ready }
    }

    /// What was counted since the last call.
    fn take(&self) -> (usize, usize) {
        (self.commands.swap(0, Ordering::Relaxed), self.ready.swap(0, Ordering::Relaxed))
    }
}
