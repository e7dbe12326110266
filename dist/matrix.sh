#!/bin/sh
# Tries Andante on one kernel after the other, and prints a table.
#
#   dist/matrix.sh ANDANTE OUT [VERSION…]
#
# A VERSION is as much of a kernel's as is asked for, such as 6.18; `folder` stands for the one in ANDANTE_KERNEL_DIR,
# `ubuntu` for the newest of Ubuntu's, which only an Ubuntu has. With VERSION/CPUS it has so many virtual CPUs.
# A kernel that cannot be had is a line that says why, and no failure; one that can and fails is.
set -u
andante=$1 out=$2
shift 2
[ $# -gt 0 ] || set -- 6.18 7.0 7.2.13 7.3 ubuntu 7.2.13/8 7.2.13/40
mkdir -p "$out"
is_ubuntu=no
! grep -q '^ID=ubuntu$' /etc/os-release || is_ubuntu=yes
failed=0

# One case: its word, and in $folder/log why it failed.
try() {
	folder=$out/$row/$1
	mkdir -p "$folder"
	if ANDANTE_KERNEL=$version "$andante" lab run matrix --brief --machines 1 --out "$folder" --case "$1" --scheduler "$2" \
		--set "cpus = $cpus" --set "memory_mib = $memory_mib" $3 >"$folder/log" 2>&1; then
		word=ok
	else
		word=FAILED
	fi
}

line() { printf '%-12s %4s  %-28s %8s  %-8s %-8s %-8s %-8s %-8s\n' "$@"; }
line version CPUs kernel 'load ms' shares contract session events kill
for asked; do
	row=$(echo "$asked" | tr / -)
	version=${asked%/*} cpus=1
	[ "$version" = "$asked" ] || cpus=${asked#*/}
	# A machine of many CPUs needs memory for each: 16 MiB for the kernel's own tables and ours.
	memory_mib=$((1024 + 16 * cpus))
	case $version in
	folder) version= ;;
	ubuntu)
		if [ $is_ubuntu = no ]; then
			line "$asked" "$cpus" "cannot be had: the apt of this machine is not Ubuntu's; run make matrix on an Ubuntu"
			continue
		fi
		version=
		;;
	esac
	try shares andante ""
	shares=$word
	# No such kernel: nothing has booted.
	if [ "$shares" = FAILED ] && [ ! -e "$out/$row/shares/matrix/result.json" ] &&
		grep -q 'apt offers no kernel\|cannot be used because\|none of the kernels\|holds no modules' "$out/$row/shares/log"; then
		reason=$(grep -o 'apt offers no kernel [^(]*\|kernel .* cannot be used because.*\|none of the kernels.*\|[^/ ]* holds no modules' "$out/$row/shares/log" | tail -n 1)
		line "$asked" "$cpus" "cannot be had: $reason"
		continue
	fi
	json=$out/$row/shares/matrix/shares/result.json
	kernel=$(sed -n 's/^  "kernel": "\(.*\)",$/\1/p' "$json" 2>/dev/null)
	load_ms=$(sed -n 's/^ *"load_ms": \([0-9]*\).*/\1/p' "$json" 2>/dev/null)
	# 8 s are promised of one CPU, beside loops too. Of several only one has work meanwhile, and the others, which idle,
	# take little of the instructions that they share: on 6.18.15 loading took 6.3 s with one and 7.7 s with four, so that
	# half a second for each further one is enough. What has to be verified once per CPU shows as more than that.
	bound_ms=$((8000 + 500 * (cpus - 1)))
	if [ -n "$load_ms" ] && [ "$load_ms" -gt $bound_ms ]; then
		echo "andante: loading took $load_ms ms, more than $bound_ms" >>"$out/$row/shares/log"
		shares=FAILED
	fi
	try contract andante ""
	contract=$word
	try session andante ""
	session=$word
	try events andante-dwcs ""
	events=$word
	# Loading takes the longer the more virtual CPUs are busy, which share the speed of one.
	try kill eevdf "--set duration_s=$((20 + 10 * cpus))"
	kill=$word
	line "$asked" "$cpus" "${kernel:-unknown}" "${load_ms:-none}" "$shares" "$contract" "$session" "$events" "$kill"
	for one in shares contract session events kill; do
		eval "word=\$$one"
		[ "$word" = FAILED ] || continue
		failed=$((failed + 1))
		echo "    $one: $(grep '^andante: ' "$out/$row/$one/log" | tail -n 1 | cut -c1-300)"
	done
done
echo "matrix: $failed failed; consoles and results in $out"
[ "$failed" -eq 0 ]
