-- Optional: splits the tables that grow with the number of keys by the hash of the record. For stores that hold a hundred
-- million records and more: a vacuum, a reindex or a backup then works on one part at a time, and the index pages that
-- claims write stay in memory for longer. Below that it only costs (a part more to plan and to lock in each statement).
-- Never by time: the same key could then be claimed once in each part.
--
-- Run it after the migrations, by hand, in the library's schema, with nothing else connected:
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -c 'set search_path = idem' -f partition.sql
--
-- One transaction: all is moved or nothing is. It writes every record once, needs room for a second copy of them, and locks
-- the tables meanwhile. Later migrations of the library treat a split table as any other. Run twice, it fails and
-- changes nothing.

begin;
lock table idem_key, idem_response, idem_input, idem_step in access exclusive mode;

do $$
declare
  parts constant integer := 32;                 -- a hundred million records are three million in each
  grows record;
begin
  for grows in
    select * from (values ('idem_key', 'fillfactor = 50'), ('idem_response', ''), ('idem_input', ''), ('idem_step', 'fillfactor = 50'))
         as it (name, filled)
  loop
    if (select relkind from pg_class where oid = grows.name::regclass) = 'p' then
      raise exception '% is split already', grows.name;
    end if;
    execute format('alter table %I rename to %I', grows.name, grows.name || '_whole');
    -- Columns, defaults, the primary key and the indexes; a foreign key is not copied, see below.
    execute format('create table %I (like %I including all) partition by hash (kid)', grows.name, grows.name || '_whole');
    for part in 0 .. parts - 1 loop
      execute format(
        'create table %I partition of %I for values with (modulus %s, remainder %s) %s',
        grows.name || '_' || part, grows.name, parts, part,
        case grows.filled when '' then '' else 'with (' || grows.filled || ')' end
      );
    end loop;
    execute format('insert into %I select * from %I', grows.name, grows.name || '_whole');
    execute format('drop table %I', grows.name || '_whole');
  end loop;
end
$$;

-- A commit without the outcome is refused, as before.
alter table idem_key add foreign key (must_finish) references idem_unfinished (kid) deferrable initially deferred;
alter table idem_step add foreign key (must_finish) references idem_unfinished (kid) deferrable initially deferred;

commit;
analyze idem_key, idem_response, idem_input, idem_step;
