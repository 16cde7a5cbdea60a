-- Records, answers, links, steps, orders and the audit trail. All times are milliseconds since 1970 by SQLite's clock; every table is
-- strict, so that a wrong type is an error and not a silent conversion.

create table idem_meta (
  id        integer primary key check (id = 1), -- one row
  fence     integer not null,                   -- the last fence given out: SQLite has no sequences, and a counter per record could repeat
  schema    integer not null,                   -- the last migration that ran; a marker of our own, so that no other tool's migrations meet ours
  purged_at integer not null                    -- when records that are over were last removed, to notice a clock that jumped
) strict;
insert into idem_meta (id, fence, schema, purged_at)
values (1, 0, 1, cast(round((julianday('now') - 2440587.5) * 86400000.0) as integer));

-- Always empty; see idem_key.must_finish.
create table idem_unfinished (
  kid blob not null primary key check (false)
) strict;

-- The narrow row of every claim, completion and renewal. With rowid, in the order of the first claims, because a commit writes
-- whole pages: the rows of a slice are neighbours, and only the index of kid, whose entries are short, is met at random. Without
-- rowid, each claim and each completion wrote a page of its own, which was twice as much.
create table idem_key (
  id          integer not null primary key,     -- of the row; a record's answer has the same
  kid         blob    not null unique,          -- digest of namespace, scope, operation and key; 16 bytes, so a long key cannot break the index
  scope       text    not null,                 -- for operators; the identity is in kid
  op          text    not null,
  state       integer not null,                 -- no check: an older program must be able to read a newer state
  reason      integer not null,                 -- 0 = none
  fence       integer not null,
  attempt     blob    not null,                 -- random; whoever writes as an owner compares it
  attempts    integer not null,
  epoch       integer not null,                 -- the fence of the claim by which the key started afresh: so none comes twice
  fp_alg      integer not null,                 -- fingerprints of another algorithm are not compared
  fp          blob    not null,
  lease_until integer not null,
  created_at  integer not null,                 -- of the last claim
  expires_at  integer not null,                 -- end of replay
  guard_until integer not null,                 -- from here on the record counts as absent, unless its outcome is open
  tries       integer not null default 0,       -- how often a recovery has tried to settle this run
  recover_at  integer not null default 0,       -- no recovery before; apart from lease_until, from which the quarantine counts
  rerun_until integer not null default 0,       -- until then the operation may be run again (in_doubt = rerun_deduped); 0 = never
  must_finish blob references idem_unfinished (kid) deferrable initially deferred -- set while a body runs in the same transaction: a commit without its outcome is refused
) strict;
-- What is open, so that a look for doubts does not read every record. Partial: a record is in it only while it runs or is
-- in doubt, so it stays small however many there are, and a completion takes its entry out again.
create index idem_key_open on idem_key (op) where state in (1, 5, 6);
-- Finds what may be removed: else every purge would read all of the table, under the lock for which claims wait. On this
-- column because a completion in time does not change it; with kid, by which a look goes on where the one before has stopped.
create index idem_key_guard on idem_key (guard_until, kid);

-- Apart from idem_key, so that a renewal does not rewrite the body. Found by the id of the record's row, so it needs no index.
create table idem_response (
  id      integer not null primary key,
  status  integer,                              -- null: the value of a plain function
  headers blob    not null,
  body    blob                                  -- null: not retained
) strict;

-- The argument by which a function can be called again when nobody else does it. Apart from idem_key, because
-- rows are long, and few operations have one. Stays until its record is removed: a deletion by each completion would cost as much as the claim.
create table idem_input (
  kid   blob    not null primary key,
  epoch integer not null,                       -- of the runs that it is for: a fresh run does not see it
  body  blob    not null                        -- JSON
) strict;

-- No foreign key to idem_key, whose row it would lock: the purge removes links with their record.
create table idem_link (
  provider text    not null,
  id       text    not null,
  kid      blob    not null,
  epoch    integer not null,                    -- of the run that made it: a fresh run does not see it
  attempt  blob    not null,
  at       integer not null,
  primary key (provider, id, kid)               -- finds an operation by its provider's id; one id may belong to several
) strict;
create index idem_link_kid on idem_link (kid);  -- the links of one record

-- What a run of several steps has come to. Of every epoch: a claim that starts afresh leaves the old ones lying, so that it
-- costs no more, and the purge removes them with their record. With rowid, because results are long; and its order is that
-- of the first starts, since a new row gets a larger one than all that are there.
create table idem_step (
  kid         blob    not null,
  epoch       integer not null,                 -- the record's when it was started: a fresh run does not see it
  step        text    not null,                 -- its name
  kind        integer not null,                 -- no check: an older program must be able to read a newer kind
  input       blob,                             -- digest of what it was given; null: the program does not say
  result      blob,                             -- null: started, and not ended
  started_at  integer not null,                 -- for the first time in its epoch: until when a provider knows its key counts from here
  must_finish blob references idem_unfinished (kid) deferrable initially deferred, -- as in idem_key: a commit without the result is refused
  primary key (kid, epoch, step)                -- also finds the steps of one record, whatever their epoch
) strict;

-- The highest sequence that was applied to each object whose events come in any order; written in the transaction that applies
-- one. Apart from idem_key: the records of an object's events are many, and are found by their keys. Without rowid, because rows are
-- short: one tree to search and write instead of two.
create table idem_order (
  id          blob    not null primary key,     -- digest of namespace, scope, operation, object and the form of its sequences
  sequence    integer not null,                 -- a number, or microseconds since 1970
  guard_until integer not null                  -- from here on it may be removed; while it is there, it counts
) strict, without rowid;
-- Finds what may be removed: else every purge would read all of the table, under the lock for which claims wait.
create index idem_order_guard on idem_order (guard_until);

create table idem_audit (
  at         integer not null,
  kid        blob    not null,
  fence      integer not null,                  -- what the operator had seen
  from_state integer not null,
  to_state   integer not null,
  who        text    not null,
  why        text    not null
) strict;
