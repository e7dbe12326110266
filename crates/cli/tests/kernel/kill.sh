#!/bin/sh
# Kills the scheduler's process 20 times while six endless loops run in six classes. They stand still
# while it loads, or that would take minutes.
cgroup=/sys/fs/cgroup
scx=/sys/kernel/sched_ext/state

await() { # until the scheduler is in this state, 30 s at most
	i=0
	while [ "$(cat $scx)" != "$1" ] && [ $i -lt 600 ]; do
		sleep 0.05
		i=$((i + 1))
	done
}

cpu_usec() { sed -n 's/^usage_usec //p' "$1/cpu.stat"; }

echo +cpu >$cgroup/cgroup.subtree_control
hogs=
for class in a b; do
	for n in 1 2 3; do
		mkdir $cgroup/$class$n
		sh -c "echo 0 >$cgroup/$class$n/cgroup.procs; exec endless" &
		hogs="$hogs $!"
	done
done
round=0
while [ $round -lt 20 ]; do
	round=$((round + 1))
	kill -STOP $hogs
	andante run --quiet &
	daemon=$!
	await enabled
	kill -CONT $hogs
	sleep 0.2
	kill -9 $daemon
	wait $daemon 2>/dev/null
	await disabled
	echo "REPORT after_kill $(cat $scx)"
done
alive=0
for hog in $hogs; do
	kill -0 "$hog" && alive=$((alive + 1))
done
echo "REPORT hogs_alive $alive"
before=
for class in a1 a2 a3 b1 b2 b3; do before="$before $(cpu_usec $cgroup/$class)"; done
sleep 2
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
