//! What going on with one interrupted operation came to.

/// The label `outcome` of `idem_resumptions_total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumed {
    Completed,
    Failed,
}

impl Resumed {
    /// In the order of their declaration: one's place here is its number.
    pub(crate) const ALL: [Self; 2] = [Self::Completed, Self::Failed];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}
