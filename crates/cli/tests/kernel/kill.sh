#!/bin/sh
# Kills the scheduler's process while six endless loops run in six classes: $after_s after it was in charge
# and they ran, and then, $again times, loaded anew. They stand still while it loads, or that would take
# minutes.
. /andante/common.sh
cgroup=/sys/fs/cgroup

await_disabled() { # 30 s at most
	i=0
	while [ "$(state)" != disabled ] && [ $i -lt 600 ]; do
		sleep 0.05
		i=$((i + 1))
	done
}

cpu_usec() { sed -n 's/^usage_usec //p' "$1/cpu.stat"; }

kill_under_load() {
	kill -CONT $hogs
	sleep "$after_s"
	kill -9 $scheduler
	wait $scheduler 2>/dev/null
	await_disabled
	echo "REPORT after_kill $(state)"
}

echo +cpu >$cgroup/cgroup.subtree_control
for class in a b; do
	for n in 1 2 3; do
		mkdir $cgroup/$class$n
		sh -c "echo 0 >$cgroup/$class$n/cgroup.procs; exec endless" &
		hogs="$hogs $!"
	done
done
sleep 0.1
kill -STOP $hogs
in_charge
given
kill_under_load
while [ "$again" -gt 0 ]; do
	again=$((again - 1))
	kill -STOP $hogs
	in_charge
	kill_under_load
done
alive=0
for hog in $hogs; do
	kill -0 "$hog" && alive=$((alive + 1))
done
echo "REPORT hogs_alive $alive"
before=
for class in a1 a2 a3 b1 b2 b3; do before="$before $(cpu_usec $cgroup/$class)"; done
sleep 0.3
progressing=0
for class in a1 a2 a3 b1 b2 b3; do
	set -- $before
	[ "$(cpu_usec $cgroup/$class)" -gt "$1" ] && progressing=$((progressing + 1))
	shift
	before="$*"
done
echo "REPORT hogs_progressing $progressing"
kill $hogs
exit 0
