//! What can be switched, and the configurations by their letters in the contract.

/// How a body runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The claim is committed, the body acts outside of the database, the outcome is committed.
    Held,
    /// Claim, effect and outcome become visible by one commit.
    OneTransaction,
    /// The claim is committed under a lease; effect and outcome become visible by one commit.
    LeasedTransaction,
}

/// What a provider dedupes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dedupe {
    /// It does not.
    No,
    /// A key that stays the same after a release, such as the number of the order.
    ByRecord,
    /// The provider key that idem derives: after a release it is another one.
    ByEpoch,
}

/// Whether a hook or an operator that found nothing at the provider releases the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Never: it only completes.
    Never,
    /// If the quarantine was over before it looked.
    QuarantinedAtTheLook,
    /// If the quarantine is over when it has looked. Wrong.
    QuarantinedAtTheEnd,
    /// At once.
    AtOnce,
    /// Never: it closes the record without an answer, at once.
    Void,
    /// Never: it lets the record be run again, at once.
    Resume,
}

/// Who settles doubts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settler {
    /// A person: looks, then decides by compare-and-set on the fence.
    Operator(Release),
    /// A program: takes the doubt over by a new attempt (T12), looks, then decides.
    Hook(Release),
}

impl Settler {
    pub(crate) fn release(self) -> Release {
        match self {
            Self::Operator(release) | Self::Hook(release) => release,
        }
    }
}

/// What the report of a body says that was cut off while it waited for the provider: its request is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutOff {
    /// No body is cut off.
    Never,
    /// A time-out.
    TimedOut,
    /// A failure, as of a body that came to its own end. Wrong.
    Failed,
}

/// What an owner's write is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// The random id of the attempt.
    Attempt,
    /// A counter in the record.
    Counter,
    /// Nothing; it just writes. Wrong.
    Nothing,
}

/// One configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "switches")]
pub struct Config {
    /// How bodies run.
    pub mode: Mode,
    /// A run that failed, or whose lease is over, is run again by a claim with the same payload (T4, T9).
    pub rerun: bool,
    /// The window for that ends at some time.
    pub rerun_ends: bool,
    /// A run that continues an operation may give the key back. Wrong.
    pub second_releases: bool,
    /// What the provider dedupes by.
    pub dedupe: Dedupe,
    /// A 5xx gives the key back, as if nothing had happened. Wrong in held mode.
    pub release_errors: bool,
    /// Bodies may be cut off while their request is on its way.
    pub cut_off: CutOff,
    /// Bodies may end with a client error, before they acted.
    pub client_errors: bool,
    /// A run whose lease is over still tries to write, and to renew.
    pub late: bool,
    /// Who settles doubts.
    pub settler: Option<Settler>,
    /// What an owner's write is compared with.
    pub compare: Compare,
    /// A released record is deleted instead of marked.
    pub delete_released: bool,
    /// Whoever has lost its record answers with what it has got itself. Wrong.
    pub loser_answers: bool,
    /// Records are purged; `Some(false)`: without comparing again under the lock. Wrong.
    pub purge: Option<bool>,
    /// Windows end after what frozen bodies can live. If not, a `ttl` is shorter than the quarantine.
    pub windows_outlast_bodies: bool,
    /// What is settled refuses until its quarantine is over, however short its windows are. Wrong if not.
    pub settled_guards: bool,
    /// How many runs there are at most. Requests that are refused or get a replay are not counted.
    pub runs: u8,
    /// How often a lease, or a transaction's session, ends at most.
    pub expiries: u8,
    /// How often a replay window ends at most.
    pub windows: u8,
}

/// Held, nobody settles, owners stop at the end of their lease: configuration A, on which all others build.
pub const A: Config = Config {
    mode: Mode::Held,
    rerun: false,
    rerun_ends: false,
    second_releases: false,
    dedupe: Dedupe::No,
    release_errors: false,
    cut_off: CutOff::Never,
    client_errors: true,
    late: false,
    settler: None,
    compare: Compare::Attempt,
    delete_released: false,
    loser_answers: false,
    purge: Some(true),
    windows_outlast_bodies: true,
    settled_guards: true,
    runs: 4,
    expiries: 3,
    windows: 2,
};
