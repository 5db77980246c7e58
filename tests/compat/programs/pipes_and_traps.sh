#!/bin/bash
# What bash does with processes, pipes and signals.
trap 'echo "exit trap: $?"' EXIT
trap 'echo "usr1"' USR1
trap 'echo "child of $BASH_SUBSHELL"' ERR

seq 1000 | grep 7 | sort -rn | head -3 | tee copy | wc -l
echo "${PIPESTATUS[@]}"
set -o pipefail
false | true
echo "pipefail: $?"
diff <(seq 5) <(seq 2 6)
cat <<< "here $(printf '%s-' {a..e} | tr a-z A-Z)"
kill -USR1 $$
(trap 'echo inner; exit 4' TERM; kill -TERM $BASHPID; echo never)
echo "subshell: $?"
mkfifo fifo
(trap 'echo woken; exit 3' TERM; echo > fifo; while :; do sleep 0.01; done) &
sleeper=$!
read -r < fifo
kill -TERM "$sleeper"
wait "$sleeper"
echo "sleeper: $?"
(for i in 1 2 3; do echo "line $i"; done > fifo) &
while read -r line; do echo "read $line"; done < fifo
wait
coproc doubled { while read -r n; do echo $((n * 2)); done; }
for i in 3 4; do
    echo "$i" >&"${doubled[1]}"
    read -r answer <&"${doubled[0]}"
    echo "doubled $answer"
done
writer=${doubled[1]} reader=$doubled_PID
exec {writer}>&-
wait "$reader"
for i in {1..30}; do (exit $((i % 3))) & done
wait
for i in {1..30}; do x=$(echo "$i"); done
echo "last $x"
(ulimit -t 1; while :; do :; done)
echo "limited: $?"
exit 5
