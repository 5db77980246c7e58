#!/bin/bash
# Makes a repository, clones it, merges, repacks and checks it.
set -euo pipefail
export HOME=$PWD GIT_CONFIG_NOSYSTEM=1 GIT_PAGER=cat
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=C \
    GIT_COMMITTER_EMAIL=c@example.org
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'
git config --global pack.threads 2
git config --global gc.auto 0
git config --global advice.detachedHead false

git init -q -b main origin
cd origin
for i in {1..12}; do
    seq "$i" "$((i * 50))" > "file_$((i % 4))"
    git add .
    git commit -qm "Change $i"
done
git checkout -q -b side HEAD~3
echo side > side
git add side
git commit -qm 'Go aside'
git checkout -q main
git merge -q --no-edit side
cd ..
git clone -q --no-local origin copy
cd copy
git log --graph --stat --oneline
git gc -q --prune=now
git fsck --full --no-progress
git count-objects -v | grep -E '^(count|in-pack|packs)'
git blame -s file_1 | tail -3
git grep -c 77 | sort
git bisect start -q HEAD HEAD~6 > /dev/null
git bisect run sh -c '! grep -q "^400$" file_*' | tail -1
git rev-parse HEAD
git status --short
