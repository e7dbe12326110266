#!/bin/sh
# Runs a libFuzzer target for some seconds and says in one line what came of it.
#
#   run.sh NAME SECONDS CORPUS REPLAY BINARY [ARGUMENT...]
#
# CORPUS is the folder that keeps what is found on the way (libFuzzer's first), REPLAY the command, as seen from the root
# of the repository, that runs one input again. The line is renewed while it runs, on a terminal.
set -eu
name=$1 seconds=$2 corpus=$3 replay=$4 binary=$5
shift 5
found=${corpus%/*}/../found
mkdir -p "$corpus" "$found"
found=$(cd "$found" && pwd)
log=$found/$name.log

"$binary" "$corpus" "$@" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
	-artifact_prefix="$found/$name-" >"$log" 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null; exit 130' INT TERM

# Edges of the code that were reached, in the first and in the last line that tell them.
reached() {
	grep -ao 'cov: [0-9]*' "$log" | sed -n "$1s/cov: //p"
}

began=$(date +%s)
while kill -0 $pid 2>/dev/null; do
	if [ -t 1 ]; then
		printf '\r%-10s %3d of %d s, %s edges ' "$name" $(($(date +%s) - began)) "$seconds" \
			"$(reached '$')"
	fi
	sleep 1
done
[ ! -t 1 ] || printf '\r'
if wait $pid; then
	printf '%-10s %d s, %s inputs, %s edges reached, %s in the beginning: nothing found\n' "$name" \
		"$seconds" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
		"$(reached '$')" "$(reached 1)"
	exit 0
fi
input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
printf '%-10s FAILED\n' "$name"
grep -a -m3 -E 'not so|panicked|^[^ ]*\.[ch]:[0-9]+:|runtime error|ERROR: |^ALARM' "$log" | sed 's/^/    /' || true
if [ -n "$input" ]; then
	echo "    again:  $replay $input"
	echo "    keep the input, once it passes, among those of the target: they run in every test"
fi
echo "    all of it: $log"
exit 1
