//! How old a signature may be.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use super::Refused;

/// How far a signed time stamp may be from now, before and after. Default 300 s.
///
/// This is the one place in which a clock of this process decides: a sender's time stamp says what time it is in the
/// world, and nothing is claimed yet that the store's clock could know of.
#[derive(Clone)]
pub struct Tolerance {
    limit: Duration,
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::new(Duration::from_secs(300))
    }
}

impl Tolerance {
    /// A tolerance of `limit`, by the clock of this machine.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit, now: Arc::new(wall_clock) }
    }

    /// By another clock, for tests.
    #[must_use]
    pub fn with_clock(self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { now: Arc::new(now), ..self }
    }

    /// Compares a time stamp in whole Unix seconds, in decimal digits as senders write it.
    ///
    /// # Errors
    /// 400: it is no such number. 401: it is out of date, or too far ahead.
    pub fn check(&self, unix_seconds: &str) -> Result<(), Refused> {
        let malformed = || Refused::malformed("the time stamp is not in whole Unix seconds");
        if !unix_seconds.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed()); // `parse` takes a sign too
        }
        let seconds = unix_seconds.parse().map_err(|error| malformed().because(error))?;
        let sent = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).ok_or_else(malformed)?;
        let now = (self.now)();
        let apart = now.duration_since(sent).unwrap_or_else(|ahead| ahead.duration());
        if apart > self.limit {
            return Err(Refused::unverified("the signature's time stamp is out of date, or a clock is wrong"));
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "compared with a sender's clock, not with the store's")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

impl fmt::Debug for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tolerance").field("limit", &self.limit).finish_non_exhaustive()
    }
}
