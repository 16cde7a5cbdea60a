//! A run in one transaction, on a connection of the user's pool: so the store's own connections are free for completions,
//! however many bodies run.

use std::{sync::OnceLock, time::Duration};

use sqlx::{AssertSqlSafe, PgPool, Postgres, Row as _, SqlSafeStr, SqlStr, postgres::PgRow};

use super::{
    argument::{self, Arg},
    connect::{self, Protocol},
    error::{self, failed, setup},
    order::{self, Noted},
    schema,
    sql::Statement,
    step,
    verbs::{self, Verbs},
};
use crate::store::{
    Begin, Begun, Claim, Claimed, Commit, Committed, EndStep, Finished, Found, OpenTransaction, Order, Owned,
    StartStep, Started, StepBegun, StoreError,
    open::{BACK_TO_SAVEPOINT, LEFT_OPEN, Open, SAVEPOINT},
};

/// How much longer than the body may take its session may be silent, before the server ends it.
const GRACE: Duration = Duration::from_secs(5);

/// What goes before the COMMIT where no outcome does, which says the same. A transaction that an error has aborted refuses it;
/// a COMMIT it would answer with a ROLLBACK, and without an error.
const DURABLE: &str =
    "select set_config('synchronous_commit', 'on', true) where current_setting('synchronous_commit') = 'off'";

/// Whether the program says how long a statement of its sessions may take; asked of the first that a transaction is opened on.
#[derive(Debug, Default)]
pub(super) struct Limited(OnceLock<bool>);

const LIMITED: &str = "select current_setting('statement_timeout') <> '0' as limited";

/// What opens it. Whoever freezes or is cut off, from the first statement on, leaves a session behind, which ends when it has been silent
/// for too long, and a statement, which ends when its time is over; if the program has set a time of its own, then by that.
fn opening(limit: Duration, limited: bool) -> SqlStr {
    let silence = connect::millis(limit.saturating_add(GRACE));
    let mut sql =
        format!("begin isolation level read committed; set local idle_in_transaction_session_timeout = {silence}");
    if !limited {
        sql.push_str("; ");
        sql.push_str(&limiting(limit));
    }
    AssertSqlSafe(sql).into_sql_str()
}

fn limiting(limit: Duration) -> String {
    format!("set local statement_timeout = {}", connect::millis(limit))
}

/// To take over what is there has a long statement. It is planned once, as on the store's own connections, or the server would plan it
/// anew each time, which costs more than to run it. It puts back what the program has set, for the body.
const PLANS: &str = "
    select set_config('idem.planner', concat_ws(' ', current_setting('plan_cache_mode'), current_setting('enable_seqscan'),
                                                current_setting('enable_hashjoin'), current_setting('enable_mergejoin')), true);
    set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off; set local enable_hashjoin = off;
    set local enable_mergejoin = off";

pub(super) async fn begin(verbs: &Verbs, pool: PgPool, begin: Begin) -> Result<Begun, StoreError> {
    let mut open = open(verbs, &pool, begin.limit).await?;
    let Some(claim) = &begin.claim else { return Ok(Begun::Open(Owned::unclaimed(), Box::new(open))) };
    let owned = match insert(verbs, &mut open, claim).await? {
        Some(owned) => owned,
        None => {
            // Mostly an answer that is due. It is read by one of the store's own connections, while none of the program's is held.
            let _ = roll_back(verbs, open).await; // nothing was written
            if let Some(found) = verbs.peek(&[claim.peek()]).await?.pop().flatten() {
                return Ok(Begun::Found(found));
            }
            open = self::open(verbs, &pool, begin.limit).await?;
            match take(verbs, &mut open, claim).await? {
                Claimed::Owner(owned) => owned,
                Claimed::Found(found) => {
                    let _ = roll_back(verbs, open).await; // nothing was written
                    return Ok(Begun::Found(found));
                }
            }
        }
    };
    if begin.savepoint {
        plain(verbs, &mut open, SAVEPOINT).await.map_err(failed)?;
    }
    // After the savepoint: what is noted goes with the rows, also where an answer is kept without them.
    match note(verbs, &mut open, begin.order.as_ref()).await? {
        Noted::Yes => Ok(Begun::Open(owned, Box::new(open))),
        Noted::Stale => Ok(Begun::Stale(owned, Box::new(open))),
        Noted::Busy => {
            let _ = roll_back(verbs, open).await; // the claim, and nothing else
            Ok(Begun::Found(Found::InFlight { age: Duration::ZERO }))
        }
    }
}

async fn note(verbs: &Verbs, open: &mut Open<Postgres>, order: Option<&Order>) -> Result<Noted, StoreError> {
    let Some(order) = order else { return Ok(Noted::Yes) };
    let rows = rows(verbs, open, &verbs.statements.order, &order::args(order)).await.map_err(failed)?;
    order::noted(rows.first())
}

/// As `begin`, for a step of a run that holds its record already. It waits for one by an earlier owner, which its server ends
/// when it has been silent for long enough.
pub(super) async fn begin_step(
    verbs: &Verbs,
    pool: PgPool,
    start: &StartStep,
    limit: Duration,
) -> Result<StepBegun, StoreError> {
    let mut open = open(verbs, &pool, limit).await?;
    let args = step::start_args(std::slice::from_ref(start));
    let rows = rows(verbs, &mut open, &verbs.statements.steps.begin, &args).await.map_err(failed)?;
    match step::started(rows.first())? {
        Started::Step(step) if step.result.is_none() => Ok(StepBegun::Open(Box::new(open))),
        found => {
            let _ = roll_back(verbs, open).await; // nothing was written
            Ok(StepBegun::Found(found))
        }
    }
}

async fn open(verbs: &Verbs, pool: &PgPool, limit: Duration) -> Result<Open<Postgres>, StoreError> {
    let connection = pool.acquire().await.map_err(failed)?;
    let limited = verbs.limited.0.get().copied();
    let opened = Open::begin(connection, opening(limit, limited.unwrap_or(true)));
    let mut open = verbs.connections.within_patience(opened).await.map_err(failed)?;
    if limited.is_none() {
        ask_for_limits(verbs, &mut open, limit).await.map_err(failed)?;
    }
    Ok(open)
}

/// Once. Inside of the transaction, so that a connection which does not answer is closed.
async fn ask_for_limits(verbs: &Verbs, open: &mut Open<Postgres>, limit: Duration) -> Result<(), sqlx::Error> {
    let asked = sqlx::raw_sql(LIMITED).fetch_one(&mut **open);
    let limited: bool = verbs.connections.within_patience(asked).await?.try_get("limited")?;
    if !limited {
        let limiting = sqlx::raw_sql(AssertSqlSafe(limiting(limit))).execute(&mut **open);
        verbs.connections.within_patience(limiting).await?;
    }
    verbs.limited.0.get_or_init(|| limited);
    Ok(())
}

/// What `open` gave.
fn opened(transaction: OpenTransaction) -> Result<Open<Postgres>, StoreError> {
    let open = transaction.downcast::<Open<Postgres>>();
    open.map(|open| *open).map_err(|_| setup("the transaction is another store's"))
}

/// What is wrong with the sessions of the user's pool: the program may set up each as it likes. Their isolation does not
/// matter, for a transaction here says its own.
pub(super) async fn check(verbs: &Verbs, pool: PgPool) -> Result<Vec<String>, StoreError> {
    let mut connection = pool.acquire().await.map_err(failed)?;
    let row = sqlx::raw_sql(verbs.statements.settings.sql()).fetch_one(&mut *connection).await.map_err(failed)?;
    let faults = schema::weaknesses(&row)?.into_iter();
    Ok(faults
        .map(|fault| format!("of the pool that the store was made with, for bodies with a `Tx`: {fault}"))
        .collect())
}

/// Nearly always there is no record. `None`: there is one, or somebody else has its lock.
async fn insert(verbs: &Verbs, open: &mut Open<Postgres>, claim: &Claim) -> Result<Option<Owned>, StoreError> {
    let mut args = verbs::one_claim_args(claim);
    args.push(Arg::Long(lock(claim.record.as_bytes())));
    let rows = rows(verbs, open, &verbs.statements.claiming.begin.fresh, &args).await.map_err(failed)?;
    rows.first().map(verbs::inserted).transpose()
}

/// Where there is a record to take, or somebody else has its lock.
async fn take(verbs: &Verbs, open: &mut Open<Postgres>, claim: &Claim) -> Result<Claimed, StoreError> {
    plain(verbs, open, PLANS).await.map_err(failed)?;
    let mut args = verbs::claim_args(&[claim]);
    args.push(Arg::Long(lock(claim.record.as_bytes())));
    let rows = rows(verbs, open, &verbs.statements.claiming.begin.take, &args).await.map_err(failed)?;
    let Some(row) = rows.first() else {
        return Ok(Claimed::Found(Found::InFlight { age: Duration::ZERO })); // somebody else has the lock
    };
    verbs::decided(claim, row)?.ok_or_else(verbs::contradiction)
}

/// The number by which attempts at one record, or events of one order, whose rows are not seen yet, see each other. Two that
/// share it refuse each other for a moment, no more.
pub(super) fn lock(id: &[u8; 16]) -> i64 {
    let [high, ..] = id.as_chunks::<8>().0 else { return 0 };
    i64::from_be_bytes(*high)
}

/// With bound arguments in either protocol: the pool is the program's, which logs statements as it likes, and a text would
/// have scopes and answers in it. Until the end of a transaction a pooler keeps the server, so a statement without a name
/// is enough.
async fn rows(
    verbs: &Verbs,
    open: &mut Open<Postgres>,
    statement: &Statement,
    args: &[Arg<'_>],
) -> Result<Vec<PgRow>, sqlx::Error> {
    let named = verbs.protocol() == Protocol::Prepared;
    verbs.connections.within_patience(argument::bound(statement, args).persistent(named).fetch_all(&mut **open)).await
}

/// A statement without arguments.
async fn plain(verbs: &Verbs, open: &mut Open<Postgres>, sql: &'static str) -> Result<(), sqlx::Error> {
    verbs.connections.within_patience(sqlx::raw_sql(sql).execute(&mut **open)).await.map(drop)
}

/// Whatever goes wrong, or takes too long, all is undone: the connection is closed.
async fn roll_back(verbs: &Verbs, open: Open<Postgres>) -> Result<(), sqlx::Error> {
    verbs.connections.within_patience(open.rollback()).await
}

/// Undoes all. Where there is no transaction a ROLLBACK does no more than warn; a savepoint is refused.
async fn undo(verbs: &Verbs, mut open: Open<Postgres>) -> Committed {
    match plain(verbs, &mut open, SAVEPOINT).await {
        Err(error) if error::is_outside(&error) => return Committed::Lost,
        // The server did not answer, or its session is gone.
        Err(error) if !error::is_refusal(&error) => drop(open),
        _ => drop(roll_back(verbs, open).await),
    }
    Committed::Stored { ttl_left: Duration::ZERO }
}

pub(super) async fn commit(
    verbs: &Verbs,
    transaction: OpenTransaction,
    commit: Commit,
) -> Result<Committed, StoreError> {
    let mut open = opened(transaction)?;
    if commit.undoes_all() {
        return Ok(undo(verbs, open).await);
    }
    let settled = settle(verbs, &mut open, &commit).await;
    conclude(verbs, open, settled).await
}

pub(super) async fn commit_step(
    verbs: &Verbs,
    transaction: OpenTransaction,
    end: &EndStep,
) -> Result<Committed, StoreError> {
    let mut open = opened(transaction)?;
    let args = step::end_args(std::slice::from_ref(end));
    let ended = match rows(verbs, &mut open, &verbs.statements.steps.commit, &args).await {
        Ok(rows) if !rows.is_empty() => Ok(Finished::Stored { ttl_left: Duration::ZERO }),
        Ok(_) => Ok(Finished::Lost),
        Err(error) if error::is_outside(&error) => Ok(Finished::Lost),
        Err(error) => Err(failed(error)),
    };
    conclude(verbs, open, ended).await
}

/// COMMIT, if what goes before it was done.
async fn conclude(
    verbs: &Verbs,
    open: Open<Postgres>,
    settled: Result<Finished, StoreError>,
) -> Result<Committed, StoreError> {
    let ttl_left = match settled {
        Ok(Finished::Stored { ttl_left }) => ttl_left,
        Ok(Finished::Lost) => return Ok(Committed::Lost),
        Err(error) => return Ok(Committed::Undone(error)),
    };
    match verbs.connections.within_patience(open.commit()).await {
        Ok(true) => Ok(Committed::Stored { ttl_left }),
        Ok(false) => Ok(Committed::Undone(setup(LEFT_OPEN))),
        Err(error) if error::is_refusal(&error) => Ok(Committed::Undone(failed(error))),
        Err(error) => Err(failed(error)),
    }
}

/// All that goes before the COMMIT.
async fn settle(verbs: &Verbs, open: &mut Open<Postgres>, commit: &Commit) -> Result<Finished, StoreError> {
    if commit.finish.is_none() {
        plain(verbs, open, DURABLE).await.map_err(failed)?;
    }
    let Some(finish) = &commit.finish else { return Ok(Finished::Stored { ttl_left: Duration::ZERO }) };
    if !commit.keeps_rows {
        match plain(verbs, open, BACK_TO_SAVEPOINT).await {
            Err(error) if error::is_outside(&error) => return Ok(Finished::Lost),
            done => done.map_err(failed)?,
        };
    }
    let args = verbs::one_finish_args(finish);
    let finished = match rows(verbs, open, &verbs.statements.finishing.own, &args).await {
        Err(error) if error::is_outside(&error) || error::is_refused_at_once(&error) => return Ok(Finished::Lost),
        finished => finished.map_err(failed)?,
    };
    let finished = verbs::finished(finish, finished.first())?;
    if finished != Finished::Lost && !commit.links.is_empty() {
        let args = verbs::link_args(&commit.links);
        rows(verbs, open, &verbs.statements.link, &args).await.map_err(failed)?;
    }
    Ok(finished)
}
