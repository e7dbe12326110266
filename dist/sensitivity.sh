#!/bin/sh
# How much depends on each constant of what is learnt? Halves and doubles each, builds the simulator's shell of it,
# and sweeps families of drawn workloads. Prints a table: how many draws keep every bound, of how many.
#
#   dist/sensitivity.sh ANDANTE OUT DRAWS [FAMILY…]
#
# Constants are the #defines of a number in the files below.
set -eu
andante=$1 out=$2 draws=$3
shift 3
[ $# -gt 0 ] || set -- handovers talkers disk start niced desktop sound games batch systemd keys
files="core/learn_constants.h core/bucket.h"
work=$out/work
mkdir -p "$out"

# A copy of what the shell is made of, to change.
fresh() {
	rm -rf "$work"
	mkdir -p "$work/crates/sim" "$work/target"
	cp -r bpf core "$work"
	cp -r crates/sim/kernel "$work/crates/sim"
}

# Draws that keep every bound, a number for each family and their sum; "-" if it cannot be built so.
sweep() {
	if ! make -s -C "$work/crates/sim/kernel" objects >"$out/log" 2>&1; then
		echo - -
		return
	fi
	ANDANTE_SIM_SHELL=$work/target/sim/sched.so "$andante" lab sweep "$@" --draws "$draws" \
		--scheduler andante,eevdf-fifo --brief --out "$out/sweep" 2>"$out/log" |
		sed -n 's/.*keep every bound andante \([0-9]*\),.*/\1/p' | tr '\n' ' ' |
		awk '{ for (i = 1; i <= NF; i++) sum += $i; print sum, $0 }'
}

defines() { sed -n 's/^#define \(AN_[A-Z_]*\)[ \t]*\(-\{0,1\}[0-9][0-9]*\)[uUlL]*\([ \t].*\)\{0,1\}$/\1 \2/p' "$1"; }

# The sum of the families with NAME of FILE as VALUE.
tried() {
	fresh
	sed -i "s/^\(#define $2[ \t]*\)[0-9][0-9]*/\1$3/" "$work/$1"
	shift 3
	sweep "$@"
}

fresh
base=$(sweep "$@")
echo "Draws that keep every bound, of $draws each of: $*"
echo
echo "| constant | value | as it is | half | double |"
echo "|---|---|---|---|---|"
for file in $files; do
	defines "$file" | while read -r name value; do
		echo "sensitivity: $name" >&2
		less=$(tried "$file" "$name" $((value / 2)) "$@")
		more=$(tried "$file" "$name" $((value * 2)) "$@")
		echo "| \`$name\` | $value | ${base%% *} | ${less%% *} | ${more%% *} |"
		echo "$name: $base / $less / $more" >>"$out/families"
	done
done
rm -rf "$work"
