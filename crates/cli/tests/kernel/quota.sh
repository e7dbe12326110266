# SPDX-License-Identifier: GPL-2.0
# Andante is in charge: cpu.max and cpu.idle, written while a class runs. In shares of a CPU [%], over two
# seconds each, by what cpu.stat says of the class.
root=/sys/fs/cgroup
echo +cpu >$root/cgroup.subtree_control
mkdir $root/limited $root/free
used() { sed -n 's/usage_usec //p' "$root/$1/cpu.stat"; }
share() { # KEY CLASS: what it gets in the next two seconds
	before=$(used "$2")
	sleep 2
	echo "REPORT $1 $((($(used "$2") - before) / 20000))"
}
quota() { # FIELD: what status says of the class that has a quota
	andante status --interval 0.1 --json | sed -n "s/.*\"$1\": \([^,]*\),*/\1/p" | head -n 1
}
hog 2
for hog in $hogs; do echo "$hog" >$root/limited/cgroup.procs; done
share unlimited limited
echo '20000 100000' >$root/limited/cpu.max
sleep 0.2
share fifth limited
echo "REPORT nr_throttled $(quota nr_throttled)"
echo "REPORT throttled_usec $(quota throttled_usec)"
echo "REPORT quota_usec $(quota quota_usec)"
echo "REPORT shown $(andante status --interval 1 | grep -c 'quota 0.2 CPU, throttled')"
echo "REPORT cpu_stat_throttled $(sed -n 's/nr_throttled //p' $root/limited/cpu.stat)"
echo '50000 100000' >$root/limited/cpu.max
sleep 0.2
share half limited
mkdir $root/limited/below # made, and gone, while its parent is throttled
rmdir $root/limited/below
echo 'max 100000' >$root/limited/cpu.max
share freed limited
echo "REPORT quota_after $(quota quota_usec)"
hog 1
echo "$last" >$root/free/cgroup.procs
echo 1 >$root/limited/cpu.idle
sleep 0.2
share idle limited
echo 0 >$root/limited/cpu.idle
sleep 0.2
share usual limited
echo "REPORT state $(state)"
for hog in $hogs; do kill -9 "$hog"; done
