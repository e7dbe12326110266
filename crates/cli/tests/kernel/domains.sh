#!/bin/sh
# Two CPUs, each a domain with a tree of its own: shares hold over both, though all loops begin on the
# first; nobody idles, classes and CPUs come and go, and a contract is served.
. /andante/common.sh
groups=/sys/fs/cgroup
cpu() { echo "$2" >"/sys/devices/system/cpu/cpu$1/online"; }
class() { # PATH WEIGHT
	mkdir "$groups/$1"
	echo "$2" >"$groups/$1/cpu.weight"
}
loops() { # CLASS COUNT CPUS: loops that begin on these CPUs
	for _ in $(seq "$2"); do
		(
			read -r own _ </proc/self/stat
			echo "$own" >"$groups/$1/cgroup.procs"
			exec endless
		) &
		taskset -p "$3" $! >/dev/null
		hogs="$hogs $!"
	done
}
shares() { # KEY CLASS…: reports the part of a CPU that each is given [%]
	key=$1
	shift
	parts 4 $(printf "$groups/%s " "$@") | sed "s/^/REPORT $key /"
}
idle_ticks() { awk '/^cpu / { print $5 }' /proc/stat; }

in_charge --domain-cpus 1
echo +cpu >$groups/cgroup.subtree_control
andante status --interval 0.1 --json | sed -n 's/.*"domains": \([0-9]*\).*/REPORT domains \1/p'
class one 100
class two 200
class three 300
loops one 3 1
loops two 3 1
loops three 3 1
sleep 0.5
for hog in $hogs; do taskset -p 3 "$hog" >/dev/null; done
sleep 0.5
idle=$(idle_ticks)
shares weights one two three
echo "REPORT idle_ticks $(($(idle_ticks) - idle))"
kill $hogs
wait $hogs 2>/dev/null
hogs=

# Classes in a class, of one loop and of two.
echo +cpu >$groups/one/cgroup.subtree_control
class one/alone 100
class one/pair 100
loops one/alone 1 3
loops one/pair 2 3
loops two 3 3
sleep 0.5
shares nested one two one/alone one/pair
kill $hogs
wait $hogs 2>/dev/null
hogs=

# One loop may run in the first domain only, its sibling in both; then the other way round.
for mask in 1 2; do
	loops one/alone 1 $mask
	loops one/pair 2 3
	loops two 3 3
	sleep 1 # what has just been made has the benefit of the doubt, each for 40 ms
	shares bound$mask one two one/alone one/pair
	kill $hogs
	wait $hogs 2>/dev/null
	hogs=
done

for _ in $(seq 10); do
	class brief 100
	loops brief 3 3
	sleep 0.05
	kill $hogs
	wait $hogs 2>/dev/null
	hogs=
	rmdir $groups/brief
done
echo "REPORT state $(state)"

hog 4
set -- $hogs
andante reserve "$1" 6ms/10ms
echo "REPORT promised $(parts 2 "$1")"
cpu 1 0
sleep 0.3
echo "REPORT state $(state)"
cpu 1 1
sleep 0.3
echo "REPORT state $(state)"
idle=$(idle_ticks)
echo "REPORT promised $(parts 2 "$1")"
echo "REPORT idle_ticks $(($(idle_ticks) - idle))"
kill $hogs
andante status --json | awk -F '"' '
	/"name": "andante_/ { name = $4 }
	/verified_instructions/ { sub(/[^0-9]*/, "", $3); print "REPORT verified " name, $3 + 0 }'
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
