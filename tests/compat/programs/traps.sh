#!/bin/sh
# The same in the shell that scripts of the system use.
trap 'echo exit trap' EXIT
trap 'echo hangup' HUP
trap '' INT
kill -HUP $$
kill -INT $$
(kill -KILL "$(sh -c 'echo $PPID')"; echo never)
echo "killed: $?"
seq 300 | while read -r n; do [ $((n % 100)) = 0 ] && echo "$n"; done
for name in a b c; do echo "$name" | tr a-z A-Z; done | sort -r
yes | head -2
x=$(exit 7)
echo "substituted: $?"
exec sh -c 'echo replaced; exit 6'
