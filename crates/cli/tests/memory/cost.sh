# SPDX-License-Identifier: GPL-2.0
# The CPU time that ten reservations take, of idle classes: these are looked at most often.
. /andante/common.sh

classes=$(seq 10)
for class in $classes; do mkdir $cgroups/film-$class; done
mkdir $cgroups/hog
echo +cpu +memory >$cgroups/cgroup.subtree_control
begin --learn-memory 0
for class in $classes; do in_class film-$class sleep 1000 & done

used() { # the CPU time of the daemon and its keeper so far [µs]
	sum=0
	for pid in $daemon $(keeper); do
		for thread in /proc/$pid/task/*; do
			read -r ns _ <$thread/schedstat
			sum=$((sum + ns / 1000))
		done
	done
	echo $sum
}
costs() { # KEY: reports what they use in ten seconds [µs]
	sleep 2
	before=$(used)
	sleep 10
	report "$1" $(($(used) - before))
}
costs none
for class in $classes; do andante reserve /film-$class --memory 10M --lend 50%; done
costs plenty
# Less is free than is to be, and nobody but those with a reservation has any that could be taken.
free=$(sed -n 's/^MemFree: *\([0-9]*\) kB/\1/p' /proc/meminfo)
in_class hog sh -c '(head -c "$1" /dev/zero; sleep 1000) | tail -c "$1" >/dev/null' - $(((free - 60 * 1024) * 1024)) &
sleep 10
costs tight
grep -h '^MemFree' /proc/meminfo
end
