#!/bin/bash
# PostgreSQL under $UNDER: initdb, a server and its processes, pgbench's load, and
# an orderly end. Its programs refuse to be run by root.
set -uo pipefail
bin=$(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V | tail -1)
as_user=()
if [ "$(id -u)" = 0 ]; then
    chown nobody .
    as_user=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
fi

query() {
    "${as_user[@]}" "$bin/psql" -h "$PWD" -d postgres -U postgres -XAtq -c "$1" 2>&1
}
wait_for_server() {
    until "${as_user[@]}" "$bin/pg_isready" -q -h "$PWD" -U postgres; do
        kill -0 "$server" 2> /dev/null || { tail -3 server.log; exit 1; }
        sleep 0.1
    done
}

"${as_user[@]}" "$UNDER" "$bin/initdb" -D "$PWD/data" -U postgres --no-sync --locale=C -E UTF8 \
    > initdb.log 2>&1
echo "initdb: status $?"
"${as_user[@]}" "$UNDER" "$bin/postgres" -D "$PWD/data" -k "$PWD" -c listen_addresses= -F \
    -c shared_buffers=16MB -c max_parallel_workers_per_gather=2 > server.log 2>&1 &
server=$!
wait_for_server
"${as_user[@]}" "$bin/pgbench" -h "$PWD" -U postgres -i -q postgres > /dev/null 2>&1
echo "pgbench -i: status $?"
"${as_user[@]}" "$bin/pgbench" -h "$PWD" -U postgres -c 4 -j 2 -t 40 -n postgres 2> /dev/null |
    grep -E '^number of (transactions|failed)'
# pgbench keeps the sums of all tables equal.
query 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(delta) FROM pgbench_history),
              (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(tbalance) FROM pgbench_tellers),
              (SELECT count(*) FROM pgbench_history)'
query 'SET parallel_setup_cost = 0; SET min_parallel_table_scan_size = 0;
       SELECT count(*), sum(aid) FROM pgbench_accounts'
query "SELECT md5(string_agg(md5(i::text), '')) FROM generate_series(1, 2000) i"
query 'SELECT 1 / 0'
query 'VACUUM ANALYZE'
query 'CHECKPOINT'
query 'SELECT relname, relpages > 0 FROM pg_class WHERE relname LIKE $$pgbench%$$ ORDER BY 1'
kill -INT "$server"
wait "$server"
echo "server: status $?"
