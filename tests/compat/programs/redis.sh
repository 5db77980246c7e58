#!/bin/bash
# A Redis server under $UNDER: replies, requests of its benchmark, a snapshot by a forked child,
# the end by a signal, and what the next server finds.
set -uo pipefail

client() {
    redis-cli -s "$PWD/socket" "$@"
}

start_server() {
    "$UNDER" redis-server --port 0 --unixsocket "$PWD/socket" --save '' --io-threads 2 \
        --dir "$PWD" --dbfilename snapshot --daemonize no > server.log 2>&1 &
    server=$!
    until client ping > /dev/null 2>&1; do
        kill -0 "$server" 2> /dev/null || { tail -3 server.log; exit 1; }
        sleep 0.05
    done
}

end_server() {
    kill -TERM "$server"
    wait "$server"
    echo "server: status $?"
}

start_server
client set greeting hello
client eval 'local s = 0 for i = 1, 100 do s = s + i end return s' 0
client zadd scores 3 c 1 a 2 b
client zrange scores 0 -1 withscores
client lpush list {1..20} > /dev/null
client sort list limit 0 3
redis-benchmark -s "$PWD/socket" -n 3000 -c 20 -P 4 -t set,get,incr,lpush,sadd,hset -r 500 -q \
    > benchmark.log
client info commandstats | tr '\r' ' ' | sed -nE 's/^(cmdstat_(set|get|incr|lpush|hset):calls=[0-9]+).*/\1/p' | sort
client bgsave
while client info persistence | grep -q 'rdb_bgsave_in_progress:1'; do sleep 0.05; done
client info persistence | tr -d '\r' | grep rdb_last_bgsave_status
client dbsize > before
end_server
start_server
client get greeting
client dbsize | diff before - && echo "same size"
end_server
