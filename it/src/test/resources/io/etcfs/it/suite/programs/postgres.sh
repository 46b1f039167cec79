# PostgreSQL: made and loaded on one node, stopped, taken over by the other, killed there in the middle of its work, and taken back.
. "$(dirname "$0")/prelude.sh"
bin=$(find /usr/lib/postgresql -mindepth 2 -maxdepth 2 -name bin | sort -V | tail -n 1)
[ -x "$bin/initdb" ] || fail "no PostgreSQL"
SECONDS_EACH=8
run=$(mktemp -d /tmp/etcfs-postgres-XXXXXX)
data=
as() { setpriv --reuid=postgres --regid=postgres --clear-groups -- env -C "$run" HOME="$run" PATH="$bin:/usr/bin:/bin" PGHOST="$run" PGUSER=postgres PGDATABASE=postgres PGOPTIONS="-c client_min_messages=warning" "$@"; }
start() { data=$1; as pg_ctl -D "$data" -w -t 60 -l "$run/log" -o "-c listen_addresses= -c unix_socket_directories=$run -c shared_buffers=32MB -c autovacuum_naptime=5" start >/dev/null || { cat "$run/log" >&2; return 1; }; }
stop() { as pg_ctl -D "$data" -w -t 60 -m "$1" stop >/dev/null; }
ask() { as psql -X -q -A -t -v ON_ERROR_STOP=1 -c "$1"; }
finish() {
  if [ -n "$data" ] && as pg_ctl -D "$data" status >/dev/null 2>&1; then stop immediate || true; fi
  rm -rf "$run"
}
trap finish EXIT
chown postgres:postgres "$run"
install -d -o postgres -g postgres -m 700 "$ONE/data"

# What pgbench's transactions keep true, each row and index readable.
sound() {
  same "sums" t "$(ask 'select (select sum(abalance) from pgbench_accounts) = (select coalesce(sum(delta), 0) from pgbench_history) and (select sum(tbalance) from pgbench_tellers) =
    (select sum(bbalance) from pgbench_branches) and (select sum(bbalance) from pgbench_branches) = (select coalesce(sum(delta), 0) from pgbench_history)')"
  same "accounts" 200000 "$(ask 'select count(*) from pgbench_accounts')"
  silent as pg_amcheck --install-missing --heapallindexed --jobs=2 postgres
}
checksums() { # DIRECTORY; of a server that is stopped
  local said
  said=$(as pg_checksums --check -D "$1") || fail "$said"
  same "bad checksums" 0 "$(sed -n 's/^Bad checksums: *//p' <<<"$said")"
}
work() { # SECONDS
  as pgbench -n -c 4 -j 2 -T "$1" 2>&1 | grep -E 'number of transactions actually|failed' || true
}

as initdb -D "$ONE/data" --data-checksums --auth=trust --no-instructions >/dev/null
start "$ONE/data"
as pgbench -q -i -s 2 >"$run/init" 2>&1 || { cat "$run/init" >&2; fail "pgbench -i"; }
echo "on one: $(work $SECONDS_EACH)"
sound
done_on_one=$(ask 'select count(*) from pgbench_history')
[ "$done_on_one" -gt 0 ] || fail "no transaction"
stop fast
checksums "$OTHER/data"

start "$OTHER/data"
same "transactions" "$done_on_one" "$(ask 'select count(*) from pgbench_history')"
sound
echo "on the other: $(work $SECONDS_EACH)"
done_on_other=$(ask 'select count(*) from pgbench_history')
[ "$done_on_other" -gt "$done_on_one" ] || fail "no transaction on the other"
work 20 >/dev/null & load=$!
sleep 3
seen=$(ask 'select count(*) from pgbench_history')
[ "$seen" -gt "$done_on_other" ] || fail "no load"
stop immediate
wait $load || true

start "$ONE/data"
[ "$(ask 'select count(*) from pgbench_history')" -ge "$seen" ] || fail "committed transactions are gone: $(ask 'select count(*) from pgbench_history') of $seen"
grep -q 'automatic recovery in progress' "$run/log" || fail "it did not crash"
sound
ask vacuum
stop fast
checksums "$OTHER/data"
if grep -E 'PANIC|invalid page|could not (read|write|fsync|open)' "$run/log"; then fail "the server complained"; fi
