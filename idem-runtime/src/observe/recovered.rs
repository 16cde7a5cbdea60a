//! What one question to a recovery hook came to.

/// The label `outcome` of `idem_recoveries_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovered {
    Completed,
    NotApplied,
    Resumed,
    StillUnknown,
    Quarantined,
    Failed,
    Lost,
}

impl Recovered {
    /// In the order of their declaration: one's place here is its number.
    pub(crate) const ALL: [Self; 7] = [
        Self::Completed,
        Self::NotApplied,
        Self::Resumed,
        Self::StillUnknown,
        Self::Quarantined,
        Self::Failed,
        Self::Lost,
    ];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::NotApplied => "not_applied",
            Self::Resumed => "resumed",
            Self::StillUnknown => "still_unknown",
            Self::Quarantined => "quarantined",
            Self::Failed => "failed",
            Self::Lost => "lost",
        }
    }
}
