#!/bin/sh
# CPUs leave and come back under load while the scheduler is in charge: it stays, no task is lost or
# stuck, and those that are back can do what the others can. The kernel needs an interrupt that a CPU
# sends itself to take a scheduler out of charge; without it that would never end.
. /andante/common.sh
cpu() { echo "$2" >"/sys/devices/system/cpu/cpu$1/online"; }
# Words said before the machine is saved are not said again by those that go on from there.
report() { echo "REPORT $1" >>/tmp/reports; }
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

in_charge
hog 8
sleep 1

for _ in 1 2 3; do
	for gone in 3 2 1; do
		cpu $gone 0
		sleep 0.3
		report "while_gone $(state)"
	done
	for back in 1 2 3; do
		cpu $back 1
		sleep 0.3
		report "when_back $(state)"
	done
done

before=
for hog in $hogs; do before="$before $(ticks "$hog")"; done
idle_before=$(awk '/^cpu / { print $5 }' /proc/stat)
sleep 4
progressing=0
for hog in $hogs; do
	was=${before# }
	was=${was%% *}
	before=${before# }
	before=${before#* }
	[ "$(ticks "$hog")" -gt "$was" ] && progressing=$((progressing + 1))
done
idle_after=$(awk '/^cpu / { print $5 }' /proc/stat)
report "hogs_progressing $progressing"
report "idle_ticks $((idle_after - idle_before))"
report "at_the_end $(state)"
kill $hogs
given # from which of those that came back it leaves: $back
cat /tmp/reports
taskset -p $((1 << back)) $scheduler >/dev/null
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
