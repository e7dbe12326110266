# SPDX-License-Identifier: GPL-2.0
# Andante is in charge: policies of classes, set while their tasks run and wait. Of the class `ordered`, which two
# loops share, and of each of these: what it gets of the CPU in two seconds [%].
root=/sys/fs/cgroup
andante class create ordered --weight 100
andante class create other --weight 200
used() { sed -n 's/usage_usec //p' "$root/$1/cpu.stat"; }
ran() { cut -d ' ' -f 1 "/proc/$1/schedstat"; }
shares() { # KEY
	sleep 0.3
	class=$(used ordered) one=$(ran "$first") two=$(ran "$second")
	sleep 2
	echo "REPORT $1 $((($(used ordered) - class) / 20000)) $((($(ran "$first") - one) / 20000000))" \
		"$((($(ran "$second") - two) / 20000000))"
}
policy() { # POLICY: the class is ordered by it, and what it gets then
	andante class set ordered --policy "$1" || echo "REPORT failed $1"
	shares "$1"
}
hog 1
first=$last
echo "$first" >$root/ordered/cgroup.procs
hog 1
second=$last
echo "$second" >$root/ordered/cgroup.procs
hog 1
echo "$last" >$root/other/cgroup.procs
shares none
policy fifo
policy rr:20ms
policy svr4-ts
policy deadline:20ms
policy linux-2.2
# Nice -10 is level 29 of the class RT, which comes before all of the class TS.
renice -n -10 -p "$second" >/dev/null
policy svr4-rt
echo "REPORT shown $(andante class show ordered | sed -n 's/ *policy *//p')"
echo "REPORT status $(andante status --interval 0.1 --json | sed -n 's/.*"policy": "\(.*\)".*/\1/p')"
kill -TERM $scheduler
wait $scheduler
in_charge
sleep 1.2
echo "REPORT again $(andante status --interval 0.1 --json | sed -n 's/.*"policy": "\(.*\)".*/\1/p')"
renice -n 10 -p "$second" >/dev/null # by so much more: it is 0 again
policy sfq
echo "REPORT status_sfq $(andante status --interval 0.1 --json | grep -c '"policy"')"
try unknown andante class set ordered --policy svr5
try no_deadline andante class set ordered --policy deadline
try root andante class set / --policy rr
andante class create inner/below
try inner andante class set inner --policy rr
try nothing andante class set ordered
for hog in $hogs; do kill -9 "$hog"; done
echo "REPORT state $(state)"
