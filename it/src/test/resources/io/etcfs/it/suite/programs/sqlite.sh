# SQLite: two writers and a reader on each node, one database. Nothing that was committed is lost, no reader ever sees half a transaction.
. "$(dirname "$0")/prelude.sh"
EACH=60
python3 - "$ONE/db" <<'P'
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
c.executescript('create table item(id integer primary key, who text, n int, body text); create index by_who on item(who, n); create table total(n int); insert into total values(0);')
P
cat >writer.py <<'P'
import sqlite3, sys
path, who, each = sys.argv[1], sys.argv[2], int(sys.argv[3])
c = sqlite3.connect(path, timeout=120, isolation_level=None)
for i in range(each):
    c.execute('begin immediate')
    c.execute('insert into item(who, n, body) values(?, ?, ?)', (who, i, who * (100 + 37 * i)))
    c.execute('update total set n = n + 1')
    # Each tenth is taken back.
    c.execute('rollback' if i % 10 == 9 else 'commit')
P
cat >reader.py <<'P'
import os, sqlite3, sys
path, stop = sys.argv[1:]
c = sqlite3.connect(path, timeout=120, isolation_level=None)
looks = 0
while not os.path.exists(stop) or not looks:
    counted, total, bad = c.execute("select (select count(*) from item), (select n from total), (select count(*) from item where length(body) != (100 + 37 * n) * length(who))").fetchone()
    assert counted == total and not bad, (counted, total, bad)
    looks += 1
print(looks, 'looks')
P
rm -f enough
pids=() readers=()
for node in "$ONE" "$OTHER"; do
  python3 reader.py "$node/db" "$SCRATCH/enough" & readers+=($!)
  for w in 1 2; do python3 writer.py "$node/db" "w$w$([ "$node" = "$ONE" ] && [ ${#readers[@]} -eq 1 ] && echo a || echo b)" $EACH & pids+=($!); done
done
both "${pids[@]}"
: >enough
both "${readers[@]}"
cat >check.py <<'P'
import sqlite3, sys
path, each = sys.argv[1], int(sys.argv[2])
c = sqlite3.connect(path)
assert c.execute('pragma integrity_check').fetchall() == [('ok',)], 'damaged'
kept = each - each // 10
found = dict(c.execute('select who, count(distinct n) from item group by who').fetchall())
assert found == {w: kept for w in ('w1a', 'w2a', 'w1b', 'w2b')}, found
assert c.execute('select n from total').fetchone() == (4 * kept,) and c.execute('select count(*) from item').fetchone() == (4 * kept,)
P
for node in "$ONE" "$OTHER"; do python3 check.py "$node/db" $EACH; done
same "journal left" "" "$(find "$ONE" -name 'db-*')"
