#!/bin/bash
# A picture of a page, by a browser without a window.
#     screenshot.sh chromium|firefox FILE
set -uo pipefail
export HOME=$PWD/home
mkdir home
case $1 in
chromium)
    # Root may not use its sandbox, which would be one of namespaces and seccomp filters.
    chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
        --hide-scrollbars --force-device-scale-factor=1 --window-size=320,240 \
        --user-data-dir="$HOME/profile" --screenshot="$PWD/shot.png" "file://$2" ;;
firefox)
    mkdir "$HOME/profile"
    MOZ_DISABLE_CONTENT_SANDBOX=1 MOZ_HEADLESS_WIDTH=320 MOZ_HEADLESS_HEIGHT=240 \
        firefox-esr --headless --no-remote --profile "$HOME/profile" \
        --window-size=320,240 --screenshot "$PWD/shot.png" "file://$2" ;;
esac
