#!/bin/sh
# BUILT OUT: makes the packages of what has been built in BUILT, into OUT.
#
# dpkg-buildpackage writes into its sources and beside them, so it is given a copy of what it takes.
set -eu
built=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
for file in andante libandante.so libandante.a; do
	[ -e "$built/$file" ] || {
		echo "deb: $built/$file is not there: build it first with make" >&2
		exit 1
	}
done
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/andante/crates"
cp -R Cargo.toml CHANGELOG.md README.md SECURITY.md LICENSE debian dist docs scenarios papers "$copy/andante/"
cp -R crates/app "$copy/andante/crates/"
log=$out/build.log
(cd "$copy/andante" && ANDANTE_BUILT=$built dpkg-buildpackage -b -us -uc -d) >"$log" 2>&1 || {
	tail -5 "$log" >&2
	echo "deb: dpkg-buildpackage failed; all that it said is in $log" >&2
	exit 1
}
rm -f "$out"/*.deb
mv "$copy"/*.deb "$out/"
for package in "$out"/*.deb; do
	echo "deb: ${package#"$PWD/"}"
done
