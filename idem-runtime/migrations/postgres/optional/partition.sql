-- Optional: splits the tables that grow with the number of keys by the hash of the record. For stores that hold a hundred
-- million records and more: a vacuum, a reindex or a backup then works on one part at a time, and the index pages that
-- claims write stay in memory for longer. Below that it only costs (a part more to plan and to lock in each statement).
-- Never by time: the same key could then be claimed once in each part.
--
-- Run it after the migrations, by hand, in the library's schema, as the role that owns the tables (another one is refused),
-- with nothing else connected:
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -c 'set search_path = idem' -f partition.sql
--
-- One transaction: all is moved or nothing is. It writes every record once, needs room for a second copy of them, and locks
-- the tables meanwhile. What you had set for the tables (autovacuum, say) goes with them to each part, and what you had
-- granted to other roles to the split table; new settings go to each part (idem_key_0 ...), since Postgres refuses them of
-- the whole. Run twice, it fails and changes nothing.

begin;
lock table idem_key, idem_input, idem_step in access exclusive mode;

do $$
declare
  parts constant integer := 32;                 -- a hundred million records are three million in each
  grows record;
  granted record;
begin
  for grows in
    select c.relname as name, c.relkind as kind, c.relacl as acl, pg_get_userbyid(c.relowner) as owner,
           array_to_string(c.reloptions, ', ') as set
      from pg_class c
     where c.oid in ('idem_key'::regclass, 'idem_input'::regclass, 'idem_step'::regclass)
  loop
    if grows.kind = 'p' then
      raise exception '% is split already', grows.name;
    elsif grows.owner <> current_user then
      raise exception '% belongs to %, so this must be run by that role', grows.name, grows.owner;
    end if;
    execute format('alter table %I rename to %I', grows.name, grows.name || '_whole');
    -- Columns, defaults, the primary key and the indexes; a foreign key is not copied, see below.
    execute format('create table %I (like %I including all) partition by hash (kid)', grows.name, grows.name || '_whole');
    for part in 0 .. parts - 1 loop
      execute format(
        'create table %I partition of %I for values with (modulus %s, remainder %s) %s',
        grows.name || '_' || part, grows.name, parts, part,
        coalesce('with (' || grows.set || ')', '')
      );
    end loop;
    execute format('insert into %I select * from %I', grows.name, grows.name || '_whole');
    for granted in
      select a.privilege_type as what, a.is_grantable as further, case when a.grantee <> 0 then pg_get_userbyid(a.grantee) end as who
        from aclexplode(grows.acl) a where a.grantee <> a.grantor
    loop
      execute format('grant %s on %I to %s', granted.what, grows.name, coalesce(quote_ident(granted.who), 'public'))
        || case when granted.further then ' with grant option' else '' end;
    end loop;
    execute format('drop table %I', grows.name || '_whole');
  end loop;
end
$$;

-- A commit without the outcome is refused, as before.
alter table idem_key add foreign key (must_finish) references idem_unfinished (kid) deferrable initially deferred;
alter table idem_step add foreign key (must_finish) references idem_unfinished (kid) deferrable initially deferred;

commit;
analyze idem_key, idem_input, idem_step;
