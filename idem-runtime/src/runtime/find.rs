//! Which record a key names, and which records there are.

use super::Runtime;
use crate::{
    error::{Error, ErrorKind},
    key::{InvalidKey, Key, RecordId, Scope, ScopePart},
    operation::{self, ForeignScope, Operation},
    store::{Filter, Page, Record, Step},
};

impl Runtime {
    /// Reads the record that `key` names for `op` in `scope` ([`Global`](crate::Global) where the annotation says
    /// `global`). `None` if there is none, which is also what a misspelled `op`, another scope or another namespace
    /// looks like. With `foreign_scope = reject`, the scope is that of the claim which holds the key.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidKey`] for a key that no request could have; [`ErrorKind::Unavailable`] or
    /// [`ErrorKind::Store`] if the store cannot tell.
    ///
    /// # Cancel safety
    /// Reads only; drop it at will.
    pub async fn find(&self, op: &str, scope: impl ScopePart + Send, key: &str) -> Result<Option<Record>, Error> {
        let (scope, key, namespace) = (Scope::of(&scope), valid(key.as_bytes())?, &self.config().namespace);
        let rule = operation::named(op).map(|operation| operation.foreign_scope);
        if rule != Some(ForeignScope::Reject)
            && let Some(record) = self.find_record(RecordId::new(namespace, &scope, op, &key)).await?
        {
            return Ok(Some(record));
        }
        if rule == Some(ForeignScope::Isolate) {
            return Ok(None);
        }
        // One record for all scopes: only whoever holds it may know.
        let record = self.find_record(RecordId::of_all_scopes(namespace, op, &key)).await?;
        Ok(record.filter(|record| record.scope == scope.as_str()))
    }

    /// Reads the record with this identity: the `operation` of a problem, the `record` of a log line. `None` if there
    /// is none.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] or [`ErrorKind::Store`] if the store cannot tell.
    ///
    /// # Cancel safety
    /// Reads only; drop it at will.
    pub async fn find_record(&self, id: RecordId) -> Result<Option<Record>, Error> {
        self.ask(self.store().find(id)).await.map_err(Error::from_store)
    }

    /// One page of the records of the whole store, whatever their namespace, that the filter asks for; in the order of
    /// their ids, so that pages neither repeat nor miss what is there from the first to the last. A page with fewer
    /// records than it may have is the last.
    ///
    /// What is in flight, in doubt or resumable is found without looking at the rest, but what came into that state in the last
    /// seconds may be missing; on Postgres more, if no process looks for doubts ([`sweep_every`](crate::Builder::sweep_every)). Any other list reads the records one after the other until its page is full: one that asks
    /// for little among much may take longer than `store_timeout`.
    ///
    /// ```no_run
    /// # async fn stuck(idem: idem_runtime::Runtime) -> Result<(), idem_runtime::Error> {
    /// use idem_runtime::{Filter, Page, state::State};
    ///
    /// let (filter, mut page) = (Filter::default().state(State::InDoubt), Page::default());
    /// loop {
    ///     let records = idem.list(filter.clone(), page).await?;
    ///     records.iter().for_each(|record| println!("{} {} {:?}", record.id, record.op, record.age));
    ///     match records.last() {
    ///         Some(last) => page = page.after(last.id),
    ///         None => return Ok(()),
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] or [`ErrorKind::Store`] if the store cannot tell.
    ///
    /// # Cancel safety
    /// Reads only; drop it at will.
    pub async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Record>, Error> {
        self.ask(self.store().list(&filter, page)).await.map_err(Error::from_store)
    }

    /// The records that [`Execution::link`](crate::Execution::link) recorded this provider's id with: for a chargeback or a
    /// refund, of which the provider says only its own id. Usually one; a hundred at most.
    ///
    /// Links are removed with their record, when it neither answers nor refuses any more: `ttl` and `refuse_late` after its
    /// claim, 24 h by default. For what comes weeks later, as chargebacks do, the operation needs a `refuse_late` as long.
    ///
    /// A record is found also if its key has started afresh since; its `links` are then those of the new run.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// # Cancel safety
    /// Reads only; drop it at will.
    pub async fn find_by_link(&self, provider: &str, id: &str) -> Result<Vec<Record>, Error> {
        self.ask(self.store().linked(provider, id)).await.map_err(Error::from_store)
    }

    /// The recorded steps of this record's current epoch, in the order in which they were begun: what is done, and where an
    /// operation of several [`Steps`](crate::Steps) has stopped. Empty where there are none, or no such record.
    ///
    /// # Errors
    /// As [`list`](Self::list); [`ErrorKind::Store`] too, if the store keeps no steps.
    ///
    /// # Cancel safety
    /// Reads only; drop it at will.
    pub async fn steps(&self, id: RecordId) -> Result<Vec<Step>, Error> {
        self.ask(self.store().steps(id)).await.map_err(Error::from_store)
    }

    pub(crate) fn record(&self, operation: &Operation, scope: &Scope, key: &[u8]) -> Result<RecordId, Error> {
        Ok(operation.identity(&self.config().namespace, scope, &valid(key)?))
    }
}

fn valid(key: &[u8]) -> Result<Key, Error> {
    Key::new(key).map_err(|InvalidKey(why)| Error::new(ErrorKind::InvalidKey).with(|about| about.detail = Some(why)))
}
