//! What is measured: one way each to make the same handler safe, or what it is compared with.

use std::fmt;

use crate::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    /// The effect, and nothing else.
    Bare,
    /// One look-up by primary key: what replays are compared with.
    Read,
    /// Key, effect and answer in one transaction, written by hand.
    ByHandTransaction,
    /// Claim, effect and completion, each committed, written by hand.
    ByHandLease,
    Held,
    /// As [`Held`](Self::Held), without answers kept in the process.
    HeldCold,
    Transactional,
    TransactionalCold,
    /// Claim, three recorded steps and completion, each committed, written by hand.
    StepsByHand,
    Steps,
    /// A body that only sleeps.
    Nap,
    NapHeld,
}

impl Variant {
    const ALL: [Self; 12] = [
        Self::Bare,
        Self::Read,
        Self::ByHandTransaction,
        Self::ByHandLease,
        Self::Held,
        Self::HeldCold,
        Self::Transactional,
        Self::TransactionalCold,
        Self::StepsByHand,
        Self::Steps,
        Self::Nap,
        Self::NapHeld,
    ];

    /// On the command line of a server.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Read => "read",
            Self::ByHandTransaction => "by-hand-transaction",
            Self::ByHandLease => "by-hand-lease",
            Self::Held => "held",
            Self::HeldCold => "held-cold",
            Self::Transactional => "transactional",
            Self::TransactionalCold => "transactional-cold",
            Self::StepsByHand => "steps-by-hand",
            Self::Steps => "steps",
            Self::Nap => "nap",
            Self::NapHeld => "nap-held",
        }
    }

    pub(crate) fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|variant| variant.name() == name);
        found.ok_or_else(|| format!("`serve {name}`: there is no such variant").into())
    }

    /// Whether it keeps answers in the process, as idem does by default.
    pub(crate) fn keeps_answers(self) -> bool {
        !matches!(self, Self::HeldCold | Self::TransactionalCold)
    }
}

/// In a table.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bare => "bare",
            Self::Read => "bare read",
            Self::ByHandTransaction => "by hand, one transaction",
            Self::ByHandLease => "by hand, with a lease",
            Self::Held => "**idem, held**",
            Self::HeldCold => "**idem, held**, cold",
            Self::Transactional => "**idem, transactional**",
            Self::TransactionalCold => "**idem, transactional**, cold",
            Self::StepsByHand => "steps by hand",
            Self::Steps => "**idem, `Steps`**",
            Self::Nap => "bare",
            Self::NapHeld => "**idem, held**",
        })
    }
}
