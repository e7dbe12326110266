#!/bin/sh
# Draws the README's picture out of what `make demo` leaves: the headline of a report and its film, frame by frame.
#
#   dist/picture.sh                                     docs/film.png
#   dist/picture.sh REPORT.html PICTURE.png             of another report
#
# Needs Chromium.
set -eu
cd "$(dirname "$0")/.."
report=${1:-out/desktop-real/report.html}
picture=${2:-docs/film.png}
[ -f "$report" ] || {
	echo "picture: $report is not there: make demo leaves it" >&2
	exit 1
}
for browser in chromium chromium-browser google-chrome none; do
	command -v "$browser" >/dev/null && break
done
[ "$browser" != none ] || {
	echo "picture: no Chromium is installed: apt-get install chromium" >&2
	exit 1
}
page=$(mktemp --suffix=.html)
trap 'rm -f "$page"' EXIT
# The headline, and the first figure of the frames.
shown='main > :not(.verdict):not(.frames), .frames > figure + figure, .frames figcaption { display: none; }'
shown="$shown body { padding-bottom: 1.5rem; }"
sed "s|</style>|$shown</style>|" "$report" >"$page"
"$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1000,1180 \
	--screenshot="$(realpath "$picture")" "file://$page" >/dev/null 2>&1
echo "picture: $picture"
