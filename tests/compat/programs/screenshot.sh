#!/bin/bash
# A picture of a page, by a browser without a window, in its sandbox of namespaces and filters of
# system calls or without.
#     screenshot.sh chromium|firefox yes|no FILE
set -uo pipefail
browser=$1 sandbox=$2 page=$3
export MOZ_HEADLESS_WIDTH=320 MOZ_HEADLESS_HEIGHT=240
[ "$sandbox" = no ] && export MOZ_DISABLE_CONTENT_SANDBOX=1

# Chromium does not let root use its sandbox; and nobody may not be able to get here.
as_nobody=()
[ "$(id -u)" = 0 ] && as_nobody=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
HOME=$(mktemp -d /tmp/screenshot.XXXXXX)
export HOME
trap 'rm -rf "$HOME"' EXIT
cp "$page" "$HOME/page.html"
mkdir "$HOME/profile"
[ "$(id -u)" = 0 ] && chown -R nobody "$HOME"
cd "$HOME" || exit

case $browser in
chromium)
    options=(--headless --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars
             --force-device-scale-factor=1 --window-size=320,240 "--user-data-dir=$HOME/profile")
    [ "$sandbox" = no ] && options+=(--no-sandbox)
    "${as_nobody[@]}" chromium "${options[@]}" "--screenshot=$HOME/shot.png" "$HOME/page.html" ;;
firefox)
    "${as_nobody[@]}" firefox-esr --headless --no-remote --profile "$HOME/profile" \
        --window-size=320,240 --screenshot "$HOME/shot.png" "file://$HOME/page.html" ;;
esac
cp "$HOME/shot.png" "$OLDPWD"
