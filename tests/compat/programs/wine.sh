#!/bin/bash
# Compiles a program for Windows, prepares Wine's folder, and runs the program under $UNDER.
#     wine.sh SOURCE
# The server ends some seconds after its last client. To end it (-k) can leave a client that has just
# begun.
set -uo pipefail
export HOME=$PWD WINEPREFIX=$PWD/wine WINEDEBUG=-all
wine=/usr/lib/wine/wine64 server=/usr/lib/wine/wineserver64
x86_64-w64-mingw32-gcc -O1 "$1" -o program.exe || exit 1
$wine wineboot --init 2> /dev/null
$server -w
$UNDER $wine ./program.exe
echo "status $?"
$server -w
