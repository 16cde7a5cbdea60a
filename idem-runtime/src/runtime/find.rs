//! Which record a key names.

use super::Runtime;
use crate::{
    error::{Error, ErrorKind},
    key::{InvalidKey, Key, RecordId, Scope, ScopePart},
    operation::{self, ForeignScope, Operation},
    store::Record,
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

    pub(crate) fn record(&self, operation: &Operation, scope: &Scope, key: &[u8]) -> Result<RecordId, Error> {
        Ok(operation.identity(&self.config().namespace, scope, &valid(key)?))
    }
}

fn valid(key: &[u8]) -> Result<Key, Error> {
    Key::new(key).map_err(|InvalidKey(why)| Error::new(ErrorKind::InvalidKey).with(|about| about.detail = Some(why)))
}
