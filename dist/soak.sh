#!/bin/sh
# Stress for as long as is asked for, in rounds, and what each part of it came to.
#
#   dist/soak.sh ANDANTE MINUTES OUT
#
# A round has three parts, each in a machine of eight virtual CPUs:
#   parallel    race-contracts: contracts that come and go, learnt ones, binding, classes that come and go, affinity
#               and CPUs that leave and return, on CPUs that are threads of the host
#   kills       soak-kills: beside such things Andante is loaded and killed, over and over
#   virtual     the same as the first in virtual time, each round under another perturbation
# A kernel that meets a breakpoint which it has taken away already (Oops: int3) has met a fault of the emulator's: CPUs
# that are threads of the host run what was translated before another of them changed the code, as the kernel does
# whenever a scheduler comes or goes. The byte that it prints there is none. Such a part is counted for itself.
# A part is an eighth of the whole at most, and five minutes where there is time for more: so all three have had a turn
# in whatever time there is, and a fault like the one that the first part was written for, which was seen within four
# minutes whenever it was seen, has time to show. A part that was clean proves nothing.
set -u
andante=$1 minutes=$2 out=$3
end=$(($(date +%s) + minutes * 60))
rm -rf "$out"
mkdir -p "$out"
part_s=$((minutes * 60 / 8))
[ "$part_s" -le 300 ] || part_s=300
# Of one virtual second eight busy CPUs make ten of the host's or more.
virtual_s=$((part_s / 12 + 1))
# Loading takes a minute or two on virtual CPUs that are all busy, so that a shorter part would see no kill.
kills_s=$part_s
[ "$kills_s" -ge 180 ] || kills_s=180
failed=0 parts=0 emulator=0

part() {
	name=$1
	shift
	folder=$out/$round-$name
	mkdir -p "$folder"
	begin=$(date +%s)
	if "$andante" lab run "$@" --machines 1 --out "$folder" >"$folder/log" 2>&1; then
		word=passed
	elif grep -qs "Oops: int3" "$folder"/*/logs/*.console; then
		word="ended by a fault of the emulator's"
		emulator=$((emulator + 1))
	else
		word=FAILED
		failed=$((failed + 1))
	fi
	parts=$((parts + 1))
	echo "round $round $name: $word after $(($(date +%s) - begin)) s"
	# What it said of itself, and why it failed.
	sed -n 's/^✗ /    /p; s/^\(andante: .*[a-z].*: .*\)/    \1/p' "$folder/log" | grep -v 'measuring\|warming\|booting' | tail -n 4
}

round=0
while [ "$(date +%s)" -lt "$end" ]; do
	round=$((round + 1))
	part parallel race-contracts --parallel --scheduler andante --set "duration_s = $part_s"
	part kills soak-kills --parallel --scheduler eevdf --set "duration_s = $kills_s"
	kills=$(grep -c "soak: SIG" "$folder"/soak-kills/logs/*.console)
	echo "    Andante was loaded and killed $kills times"
	if [ "$kills" -eq 0 ]; then
		echo "    FAILED: it was not loaded in time, so that nothing was tried"
		failed=$((failed + 1))
	fi
	part virtual race-contracts --scheduler andante --perturbation "$round/0" --set "warmup_s = 2" \
		--set "duration_s = $virtual_s"
done
echo "soak: $parts parts in $round rounds, $failed failed, $emulator ended by the emulator; consoles and results in $out"
[ "$failed" -eq 0 ]
