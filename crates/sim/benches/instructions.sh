#!/bin/sh
# Instructions for a scheduling decision, by number of tasks: exact, whatever else the machine does.
# Each row is the difference of two runs, so that setting up does not count.
#
#   crates/sim/benches/instructions.sh
set -eu
cd "$(dirname "$0")/../../.."
command -v valgrind >/dev/null || { echo "valgrind is needed to count instructions" >&2; exit 1; }
bench=$(cargo bench --locked --no-run -p andante-sim --bench decisions --message-format=short 2>&1 |
	sed -n 's/.*Executable.*(\(.*\))$/\1/p')

# After a full round, or the first of many sleeps, of every task.
count() { # tasks kind decisions
	valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null \
		"$bench" "$1" "$2" "$3" 2>&1 | sed -n 's/.*I *refs: *//p' | tr -d ,
}

more=100000
for kind in loop block; do
	for tasks in 100 1000 10000 100000; do
		begun=$((2 * tasks + more))
		few=$(count "$tasks" "$kind" "$begun")
		many=$(count "$tasks" "$kind" $((begun + more)))
		echo "$kind $tasks $(((many - few) / more))"
	done
done | awk '
	BEGIN { printf "%6s %8s %14s %8s %8s\n", "kind", "tasks", "instructions", "grown", "log" }
	$2 == 100 { first = $3 }
	{ printf "%6s %8d %14d %8.2f %8.2f\n", $1, $2, $3, $3 / first, log($2) / log(100) }'
