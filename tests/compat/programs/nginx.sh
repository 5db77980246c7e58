#!/bin/bash
# nginx with two workers under $UNDER: requests with and without compression, new workers after
# SIGHUP, and an orderly end by SIGQUIT.
set -uo pipefail
mkdir -p html logs
seq 20000 > html/numbers
echo hello > html/index.html
for port in $(shuf -i 20000-30000 -n 20); do
    (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null || break
done
cat > nginx.conf <<END
user $(id -un) $(id -gn);
daemon off;
worker_processes 2;
pid $PWD/pid;
error_log $PWD/logs/error.log notice;
events { worker_connections 64; }
http {
    access_log $PWD/logs/access.log;
    client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy; fastcgi_temp_path $PWD/fastcgi;
    uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
    gzip on; gzip_types *; gzip_min_length 100;
    server {
        listen 127.0.0.1:$port; root $PWD/html; default_type text/plain;
        location /again/ { proxy_pass http://127.0.0.1:$port/; }
    }
}
END

fetch() {
    curl -sS "http://127.0.0.1:$port$1" "${@:2}"
}
load() {
    ab -q -n 600 -c 8 -k "http://127.0.0.1:$port$1" 2>&1 |
        grep -E '^(Complete|Failed|Non-2xx) (requests|responses)'
}

"$UNDER" nginx -p "$PWD" -c "$PWD/nginx.conf" > logs/output 2>&1 &
server=$!
until fetch / > /dev/null 2>&1; do
    kill -0 "$server" 2> /dev/null || { cat logs/output; exit 1; }
    sleep 0.05
done
fetch /
fetch /missing -o /dev/null -w '%{http_code}\n'
fetch /numbers --compressed | sha256sum
fetch /numbers -r 1000-1009 | tr '\n' ' '
echo
fetch /again/ && load / && load /again/numbers
kill -HUP "$(cat pid)"
until [ "$(grep -c 'exited with code 0' logs/error.log)" = 2 ]; do sleep 0.05; done
load /numbers
kill -QUIT "$(cat pid)"
wait "$server"
echo "server: status $?"
grep -c 'exited with code 0' logs/error.log
grep -E '\[(alert|crit|emerg)\]' logs/error.log
exit 0
