#!/bin/sh
# The simulator beside SimSo (a Python simulator of real-time schedulers, from PyPI) on the same
# periodic task set, both timed in one run: EDF, one CPU, 20 tasks, 90 % of it.
#
#   crates/sim/benches/simso/compare.sh [SECONDS]     virtual seconds to simulate; default 100
set -eu
cd "$(dirname "$0")/../../../.."
seconds=${1:-100}
here=crates/sim/benches/simso
target=${CARGO_TARGET_DIR:-target}
out=$target/simso
mkdir -p "$out"

if ! PYTHONPATH="$out/lib" python3 -c 'import simso' 2>/dev/null; then
	echo "installing SimSo into $out/lib"
	python3 -m pip install --quiet --disable-pip-version-check --target "$out/lib" simso ||
		{ echo "SimSo could not be installed: python3 with pip and PyPI are needed" >&2; exit 1; }
fi
awk 'BEGIN { for (i = 1; i <= 20; i++) { period = 5 + 7 * i; printf "%d %.3f\n", period, period * 0.045 } }' >"$out/set"
cargo build --release --quiet --locked -p andante-sim --example periodic

ours=$("$target"/release/examples/periodic "$seconds" "$out/set")
theirs=$(PYTHONPATH="$out/lib" python3 -W ignore "$here/periodic.py" "$seconds" "$out/set")
echo "$seconds virtual seconds of 20 periodic tasks, 90 % of one CPU, EDF"
echo "Andante  $ours"
echo "SimSo    $theirs"
echo "$ours $theirs" | awk '{ printf "SimSo takes %.0f times as long\n", $11 / $5 }'
