//! How a store fails.

use std::{error::Error as StdError, fmt, sync::Arc};

/// A store failed. Keeps its source. Its `Debug` is its `Display` with all sources: `main` shows that.
#[derive(thiserror::Error)]
#[error("{kind}")]
#[non_exhaustive]
pub struct StoreError {
    /// What to make of it.
    pub kind: StoreErrorKind,
    /// What the driver said.
    #[source]
    pub source: Box<dyn StdError + Send + Sync>,
}

/// What to make of a store's failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Cannot be reached, is full, locked or read-only: try again later.
    #[error("the store is unavailable")]
    Unavailable,
    /// More callers wait for it than may: this one was not sent, and nothing of it has happened. Try again later.
    #[error("the store has too much to do")]
    Overloaded,
    /// Holds something that cannot be read.
    #[error("the store holds a record that cannot be read")]
    Corrupt,
    /// Set up in a way that would break a promise.
    #[error("the store is not set up for durable records")]
    Setup,
}

impl StoreError {
    /// An error of this kind, with its source.
    pub fn new(kind: StoreErrorKind, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { kind, source: source.into() }
    }

    /// [`StoreErrorKind::Unavailable`].
    pub fn unavailable(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self::new(StoreErrorKind::Unavailable, source)
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Chain(self))
    }
}

/// An error with all its sources, in one line.
pub(crate) struct Chain<'a>(pub(crate) &'a dyn StdError);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(error) = source {
            write!(f, ": {error}")?;
            source = error.source();
        }
        Ok(())
    }
}

/// One error, for several callers.
pub(crate) struct Alike(Arc<StoreError>);

impl Alike {
    pub(crate) fn new(error: StoreError) -> Self {
        Self(Arc::new(error))
    }

    pub(crate) fn error(&self) -> StoreError {
        StoreError::new(self.0.kind, Said(Arc::clone(&self.0)))
    }
}

/// What the driver said, to each of them.
#[derive(Debug)]
struct Said(Arc<StoreError>);

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.source.fmt(f)
    }
}

impl StdError for Said {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.source()
    }
}
