#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Table of what one quantum (pick, queue, stop) costs: ns, and instructions where valgrind is found.
# bench.sh PATH-OF-BENCH
set -eu
bench=$1

# Of the later ones of so many: the first makes the orders of all siblings (order.h).
collected() {
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect=run \
		"$bench" "$1" "$2" "$3" 2>&1 | awk '/Collected/ { print $4 }'
}

instructions() {
	command -v valgrind >/dev/null || { echo '-'; return; }
	echo $((($(collected "$1" "$2" 2000) - $(collected "$1" "$2" 1000)) / 1000))
}

row() {
	printf '%6d %9d %9.0f %13s\n' "$1" "$2" "$("$bench" "$1" "$2" 200000)" \
		"$(instructions "$1" "$2")"
}

printf '%6s %9s %9s %13s\n' depth siblings ns instructions
for depth in 1 3 6 16; do row $depth 1; done
for siblings in 4 16 64 256 1024; do row 1 $siblings; done
