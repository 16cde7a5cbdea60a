//! The verbs: arguments of a slice, its statement, and what the rows say. Rows come in any order and are told apart by
//! their record, or their attempt.

use std::{collections::HashMap, time::Duration};

use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    argument::{Arg, text},
    connect::{Connections, Protocol},
    error::corrupt,
    list,
    record::{self, column},
    sql::Statements,
    transaction::Limited,
};
use crate::{
    key::RecordId,
    state::{Reason, State},
    store::{
        Attempt, Claim, Claimed, Fence, Finish, Finished, Found, Link, Outcome, Owned, Peek, Record, Renewal, Renewed,
        StoreError, StoredResponse, row::Millis,
    },
};

/// A thousand years: longer than any window that is meant, and Postgres can still add it to the date.
const LONGEST: Duration = Duration::from_secs(1000 * 365 * 24 * 3600);

/// The connections and what is sent over them.
#[derive(Debug)]
pub(super) struct Verbs {
    pub(super) connections: Connections,
    /// One of its own.
    pub(super) purging: Connections,
    pub(super) statements: Statements,
    /// Of the program's pool.
    pub(super) limited: Limited,
}

impl Verbs {
    pub(super) fn protocol(&self) -> Protocol {
        self.connections.protocol()
    }

    /// First what is not there, then what is and may be taken.
    pub(super) async fn claim(&self, claims: &[Claim]) -> Result<Vec<Claimed>, StoreError> {
        let mut claimed: HashMap<Uuid, Claimed> = HashMap::with_capacity(claims.len());
        for takes in [false, true] {
            let open: Vec<&Claim> = claims.iter().filter(|claim| !claimed.contains_key(&uuid(claim.record))).collect();
            if open.is_empty() {
                break;
            }
            let rows = by_record(self.ask(&open, takes).await?)?;
            for claim in open {
                let Some(row) = rows.get(&uuid(claim.record)) else { continue };
                let answer = match column::<Option<i16>>(row, "state")? {
                    Some(_) => decided(claim, row)?,
                    None => Some(Claimed::Owner(inserted(row)?)),
                };
                if let Some(answer) = answer {
                    claimed.insert(uuid(claim.record), answer);
                }
            }
        }
        let mut claimed = |claim: &Claim| claimed.remove(&uuid(claim.record)).ok_or_else(contradiction);
        claims.iter().map(&mut claimed).collect()
    }

    async fn ask(&self, claims: &[&Claim], takes: bool) -> Result<Vec<PgRow>, StoreError> {
        let claiming = &self.statements.claiming;
        let (statement, args) = match claims {
            [claim] if !takes && claim.input.is_none() => (&claiming.one, one_claim_args(claim)),
            _ => {
                let mut args = claim_args(claims);
                args.push(Arg::ByteStrings(claims.iter().map(|claim| claim.input.as_deref()).collect()));
                (if takes { &claiming.take } else { &claiming.fresh }, args)
            }
        };
        self.connections.rows(statement, &args).await
    }

    pub(super) async fn peek(&self, peeks: &[Peek]) -> Result<Vec<Option<Found>>, StoreError> {
        let args = [Arg::Uuids(peeks.iter().map(|peek| uuid(peek.record)).collect())];
        let rows = by_record(self.connections.rows(&self.statements.peek, &args).await?)?;
        let mut found = Vec::with_capacity(peeks.len());
        for peek in peeks {
            let Some(row) = rows.get(&uuid(peek.record)) else {
                found.push(None);
                continue;
            };
            let (stored, now) = record::found(row)?;
            found.push(stored.look(peek, None, record::response(row)?, now).and_then(Claimed::found));
        }
        Ok(found)
    }

    /// First what can be ended, then a look at what cannot.
    pub(super) async fn finish(&self, finishes: &[Finish]) -> Result<Vec<Finished>, StoreError> {
        let finishing = &self.statements.finishing;
        let rows = match finishes {
            [finish] => self.connections.rows(&finishing.one, &one_finish_args(finish)).await?,
            _ => self.connections.rows(&finishing.many, &finish_args(&finishes.iter().collect::<Vec<_>>())).await?,
        };
        let mut rows = by_attempt(rows)?;
        let run = |finish: &Finish| (uuid(finish.record), attempt(finish.attempt));
        let rest: Vec<&Finish> = finishes.iter().filter(|finish| !rows.contains_key(&run(finish))).collect();
        if !rest.is_empty() {
            rows.extend(by_attempt(self.connections.rows(&finishing.rest, &finish_args(&rest)).await?)?);
        }
        finishes.iter().map(|finish| finished(finish, rows.get(&run(finish)))).collect()
    }

    pub(super) async fn renew(&self, renewals: &[Renewal], lease: Duration) -> Result<Vec<Renewed>, StoreError> {
        let args = [
            Arg::Uuids(renewals.iter().map(|renewal| uuid(renewal.record)).collect()),
            Arg::Uuids(renewals.iter().map(|renewal| attempt(renewal.attempt)).collect()),
            Arg::Long(millis(lease)),
        ];
        let rows = by_attempt(self.connections.rows(&self.statements.renew, &args).await?)?;
        let renewed = |renewal: &Renewal| {
            let row = rows.get(&(uuid(renewal.record), attempt(renewal.attempt))).ok_or_else(contradiction)?;
            Ok(match (column(row, "held")?, column(row, "mine")?) {
                (true, _) => Renewed::Held,
                (false, true) => Renewed::Busy,
                (false, false) => Renewed::Lost,
            })
        };
        renewals.iter().map(renewed).collect()
    }

    pub(super) async fn link(&self, links: &[Link]) -> Result<(), StoreError> {
        let args = link_args(links);
        self.connections.rows(&self.statements.link, &args).await.map(drop)
    }

    pub(super) async fn find(&self, id: RecordId) -> Result<Option<Record>, StoreError> {
        let rows = self.connections.rows(&self.statements.find, &[Arg::Uuid(uuid(id))]).await?;
        Ok(list::records(&rows)?.pop())
    }
}

pub(super) fn claim_args<'a>(claims: &[&'a Claim]) -> Vec<Arg<'a>> {
    vec![
        Arg::Uuids(claims.iter().map(|claim| uuid(claim.record)).collect()),
        Arg::Uuids(claims.iter().map(|claim| attempt(claim.attempt)).collect()),
        Arg::Shorts(claims.iter().map(|claim| claim.fingerprint.algorithm()).collect()),
        Arg::ByteStrings(claims.iter().map(|claim| Some(claim.fingerprint.digest().as_slice())).collect()),
        Arg::Texts(claims.iter().map(|claim| text(&claim.scope)).collect()),
        Arg::Texts(claims.iter().map(|claim| text(claim.op)).collect()),
        Arg::Longs(claims.iter().map(|claim| millis(claim.lease)).collect()),
        Arg::Longs(claims.iter().map(|claim| millis(claim.ttl)).collect()),
        Arg::Longs(claims.iter().map(|claim| millis(claim.guard.max(claim.ttl))).collect()),
        Arg::Longs(claims.iter().map(|claim| millis(claim.rerun)).collect()),
    ]
}

/// Of one, for a statement without lists.
pub(super) fn one_claim_args(claim: &Claim) -> Vec<Arg<'_>> {
    vec![
        Arg::Uuid(uuid(claim.record)),
        Arg::Uuid(attempt(claim.attempt)),
        Arg::Short(claim.fingerprint.algorithm()),
        Arg::Bytes(Some(claim.fingerprint.digest().as_slice())),
        Arg::Text(text(&claim.scope)),
        Arg::Text(text(claim.op)),
        Arg::Long(millis(claim.lease)),
        Arg::Long(millis(claim.ttl)),
        Arg::Long(millis(claim.guard.max(claim.ttl))),
        Arg::Long(millis(claim.rerun)),
    ]
}

/// A claim that there was no record for.
pub(super) fn inserted(row: &PgRow) -> Result<Owned, StoreError> {
    let fence = Fence(column(row, "fence")?);
    Ok(Owned { fence, attempts: 1, epoch: fence })
}

/// What a row says about its claim; `None` where it may be taken, and was not asked to be.
pub(super) fn decided(claim: &Claim, row: &PgRow) -> Result<Option<Claimed>, StoreError> {
    let (stored, now) = record::found(row)?;
    Ok(stored.look(&claim.peek(), Some(claim.attempt), record::response(row)?, now))
}

fn finish_args<'a>(finishes: &[&'a Finish]) -> Vec<Arg<'a>> {
    let answers: Vec<Option<&'a StoredResponse>> = finishes.iter().map(|finish| finish.outcome.response()).collect();
    vec![
        Arg::Uuids(finishes.iter().map(|finish| uuid(finish.record)).collect()),
        Arg::Uuids(finishes.iter().map(|finish| attempt(finish.attempt)).collect()),
        Arg::Shorts(finishes.iter().map(|finish| finish.outcome.state().code()).collect()),
        Arg::Shorts(finishes.iter().map(|finish| finish.outcome.reason().map_or(0, Reason::code)).collect()),
        Arg::Longs(finishes.iter().map(|finish| keep(&finish.outcome)).collect()),
        Arg::Ints(answers.iter().map(|answer| status(*answer)).collect()),
        Arg::ByteStrings(answers.iter().map(|answer| headers(*answer)).collect()),
        Arg::ByteStrings(answers.iter().map(|answer| body(*answer)).collect()),
    ]
}

/// Of one, for a statement without lists.
pub(super) fn one_finish_args(finish: &Finish) -> [Arg<'_>; 8] {
    let answer = finish.outcome.response();
    [
        Arg::Uuid(uuid(finish.record)),
        Arg::Uuid(attempt(finish.attempt)),
        Arg::Short(finish.outcome.state().code()),
        Arg::Short(finish.outcome.reason().map_or(0, Reason::code)),
        Arg::Long(keep(&finish.outcome)),
        Arg::Int(status(answer)),
        Arg::Bytes(headers(answer)),
        Arg::Bytes(body(answer)),
    ]
}

pub(super) fn link_args(links: &[Link]) -> Vec<Arg<'_>> {
    vec![
        Arg::Texts(links.iter().map(|link| text(&link.provider)).collect()),
        Arg::Texts(links.iter().map(|link| text(&link.id)).collect()),
        Arg::Uuids(links.iter().map(|link| uuid(link.record)).collect()),
        Arg::Longs(links.iter().map(|link| link.epoch.0).collect()),
        Arg::Uuids(links.iter().map(|link| attempt(link.attempt)).collect()),
    ]
}

pub(super) fn finished(finish: &Finish, row: Option<&PgRow>) -> Result<Finished, StoreError> {
    let Some(row) = row else { return Ok(Finished::Lost) };
    let state = State::from_code(column(row, "state")?);
    if state != finish.outcome.state() {
        return Ok(Finished::Lost);
    }
    let ttl_left = match state {
        State::Done | State::Rejected => Duration::from_millis(column::<i64>(row, "ttl_left")?.try_into().unwrap_or(0)),
        State::InFlight | State::Released | State::InDoubt | State::Resumable | State::Unknown(_) => Duration::ZERO,
    };
    Ok(Finished::Stored { ttl_left })
}

fn by_record(rows: Vec<PgRow>) -> Result<HashMap<Uuid, PgRow>, StoreError> {
    rows.into_iter().map(|row| Ok((record::kid(&row)?, row))).collect()
}

/// Where one record may be asked for by the attempt that has it, and by one that has lost it.
fn by_attempt(rows: Vec<PgRow>) -> Result<HashMap<(Uuid, Uuid), PgRow>, StoreError> {
    rows.into_iter().map(|row| Ok(((record::kid(&row)?, column(&row, "attempt")?), row))).collect()
}

pub(super) fn uuid(record: RecordId) -> Uuid {
    Uuid::from_bytes(*record.as_bytes())
}

pub(super) fn attempt(attempt: Attempt) -> Uuid {
    Uuid::from_bytes(*attempt.as_bytes())
}

pub(super) fn millis(span: Duration) -> i64 {
    Millis(0).plus(span.min(LONGEST)).0
}

fn keep(outcome: &Outcome) -> i64 {
    match outcome {
        Outcome::Rejected(_, keep) => millis(*keep),
        Outcome::Done(_) | Outcome::Released(_) | Outcome::InDoubt(_) | Outcome::Resumable(_) => 0,
    }
}

pub(super) fn status(answer: Option<&StoredResponse>) -> Option<i32> {
    answer.and_then(|answer| answer.status).map(i32::from)
}

pub(super) fn headers(answer: Option<&StoredResponse>) -> Option<&[u8]> {
    answer.map(|answer| &*answer.headers)
}

pub(super) fn body(answer: Option<&StoredResponse>) -> Option<&[u8]> {
    answer.and_then(|answer| answer.body.as_deref())
}

pub(super) fn contradiction() -> StoreError {
    corrupt("the database answered a statement with rows that contradict each other")
}
