#!/bin/bash
# Builds the Go program and runs it, as a whole or with only the program under $UNDER.
#     go.sh FOLDER build|run
set -uo pipefail
export HOME=$PWD GOCACHE=$PWD/cache GOFLAGS=-trimpath GOTELEMETRY=off GOTRACEBACK=none
go build -o goroutines "$1/goroutines.go" || exit 1
[ "$2" = run ] || UNDER=
$UNDER ./goroutines
echo "status $?"
