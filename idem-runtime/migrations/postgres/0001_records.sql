-- Records, answers, links, steps, orders and the audit trail. All times are the server's; what the library writes is whole milliseconds.
-- Names are not qualified here: the search path is the library's own schema while this runs.

create table idem_meta (
  id          smallint primary key check (id = 1),  -- one row
  schema      integer not null,                 -- the last migration that ran; a marker of our own, so that no other tool's migrations meet ours
  purged_at   timestamptz not null,             -- when records that are over were last removed, to notice a clock that jumped
  noted_until timestamptz not null,             -- whatever was claimed up to here and is still open stands in idem_open
  looked_back timestamptz not null              -- when what lies shortly before that was last looked through again
);
insert into idem_meta (id, schema, purged_at, noted_until, looked_back)
select 1, 1, now, now, now from date_trunc('milliseconds', statement_timestamp()) as now;

-- Fences grow over all records, so one that was removed and made again does not repeat them.
create sequence idem_fence;

-- Always empty; see idem_key.must_finish.
create table idem_unfinished (
  kid uuid primary key check (false)
);

-- A record and its answer, which in a table of its own would be a second row with an index for every key. A renewal has no answer to
-- rewrite, for a claim takes out what an earlier run had left. Pages are filled, so most completions go to another page and write the
-- indexes once more. Filled by a quarter, none did; that was no quicker with five million keys, wrote a tenth less of WAL, and took
-- 918 bytes a key where this takes 721, several thousand where answers are longer, and three times as much after a copy.
create table idem_key (
  kid         uuid primary key,                 -- digest of namespace, scope, operation and key; 16 bytes, so a long key cannot break the index
  scope       text not null,                    -- for operators; the identity is in kid
  op          text not null,
  state       smallint not null,                -- no check: an older program must be able to read a newer state
  reason      smallint not null default 0,      -- 0 = none
  fence       bigint not null,
  epoch       bigint not null,                  -- the fence of the claim by which the key started afresh: so none comes twice
  attempt     uuid not null,                    -- random; whoever writes as an owner compares it
  attempts    integer not null default 1,
  fp_alg      smallint not null,                -- fingerprints of another algorithm are not compared
  fp          bytea not null,
  lease_until timestamptz not null,
  created_at  timestamptz not null,             -- of the last claim
  expires_at  timestamptz not null,             -- end of replay
  guard_until timestamptz not null,             -- from here on the record counts as absent, unless its outcome is open
  tries       integer not null default 0,       -- how often a recovery has tried to settle this run
  recover_at  timestamptz not null default 'epoch', -- no recovery before; apart from lease_until, from which the quarantine counts
  rerun_until timestamptz not null default 'epoch', -- until then the operation may be run again (in_doubt = rerun_deduped); 'epoch' = never
  must_finish uuid references idem_unfinished (kid) deferrable initially deferred, -- set while a body runs in the same transaction: a commit without its outcome is refused
  status      integer,                          -- of the answer; null: the value of a plain function
  headers     bytea,                            -- null: no answer
  body        bytea                             -- null: not retained
);
-- Finds what may be removed. On this column because a renewal does not change it, and a completion in time does not: one that finds room
-- in its page touches no index.
create index idem_key_guard on idem_key (guard_until);
-- Finds what was claimed in the last seconds. A completion does not change this column, and a block range index of it
-- costs a claim next to nothing and takes no room: only the newest ranges are ever read.
create index idem_key_created on idem_key using brin (created_at) with (pages_per_range = 16, autosummarize = on);

-- What ran or was in doubt a second after its claim, until somebody sees that it is settled. Instead of an index on the
-- state, which each claim and each completion would have to write. Small: nearly every record is settled before; but
-- what waits for its retry (in_doubt = rerun_deduped) stays until one comes, or for its whole window and then in doubt.
create table idem_open (
  kid uuid primary key
);

-- The argument by which a function can be called again when nobody else does it. Apart from idem_key, because few operations
-- have one. Stays until its record is removed: a deletion by each completion would cost as much as the claim.
create table idem_input (
  kid   uuid primary key,
  epoch bigint not null,                        -- of the runs that it is for: a fresh run does not see it
  body  bytea not null                          -- JSON
);

-- No foreign key to idem_key, whose row it would lock: the purge removes links with their record.
create table idem_link (
  provider text not null,
  id       text not null,
  kid      uuid not null,
  epoch    bigint not null,                     -- of the run that made it: a fresh run does not see it
  attempt  uuid not null,
  at       timestamptz not null,
  nr       bigint not null,                     -- its place among links that were sent together and share `at`
  primary key (provider, id, kid)               -- finds an operation by its provider's id; one id may belong to several
);
create index idem_link_kid on idem_link (kid);  -- the links of one record

-- What a run of several steps has come to. Of every epoch: a claim that starts afresh leaves the old ones lying, so that it
-- costs no more, and the purge removes them with their record. No foreign key to idem_key, whose row it would lock. The pages
-- are filled by half, so that a row with its result finds room beside the one without, and the index is not touched.
create table idem_step (
  kid         uuid not null,
  epoch       bigint not null,                  -- the record's when it was started: a fresh run does not see it
  step        text not null,                    -- its name
  kind        smallint not null,                -- no check: an older program must be able to read a newer kind
  input       bytea,                            -- digest of what it was given; null: the program does not say
  result      bytea,                            -- null: started, and not ended
  started_at  timestamptz not null,             -- for the first time in its epoch: until when a provider knows its key counts from here
  nr          bigint not null,                  -- drawn from idem_fence; orders those that share started_at
  must_finish uuid references idem_unfinished (kid) deferrable initially deferred, -- as in idem_key: a commit without the result is refused
  primary key (kid, epoch, step)                -- also finds the steps of one record, whatever their epoch
) with (fillfactor = 50);

-- The highest sequence that was applied to each object whose events come in any order; written in the transaction that applies
-- one. Apart from idem_key: the records of an object's events are many, and are found by their keys.
create table idem_order (
  id          uuid primary key,                 -- digest of namespace, scope, operation, object and the form of its sequences
  sequence    bigint not null,                  -- a number, or microseconds since 1970
  guard_until timestamptz not null              -- from here on it may be removed; while it is there, it counts
);
-- Finds what may be removed. Each event writes an entry of it, which few operations have; without it every purge would read all
-- of the table.
create index idem_order_guard on idem_order (guard_until);

create table idem_audit (
  at         timestamptz not null,
  kid        uuid not null,
  fence      bigint not null,                   -- what the operator had seen
  from_state smallint not null,
  to_state   smallint not null,
  who        text not null,
  why        text not null
);
