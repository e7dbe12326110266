#!/bin/sh
# Contracts beside endless loops on one CPU.
ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
now() { awk '{ print $1 * 100 }' /proc/uptime; }
share() { # PID SECONDS: the part of a CPU that it used [%]
	before=$(ticks "$1")
	began=$(now)
	sleep "$2"
	awk "BEGIN { print ($(ticks "$1") - $before) * 100 / ($(now) - $began) }"
}
contracts() { andante reserve --list --json | grep -c '"uid"'; }

andante run &
scheduler=$!
while [ "$(cat /sys/kernel/sched_ext/state)" != enabled ]; do sleep 0.05; done
for _ in 1 2 3 4 5 6 7 8; do
	(while :; do :; done) &
	hogs="$hogs $!"
done
(while :; do :; done) &
loop=$!
sleep 1
echo "REPORT alone $(share $loop 3)"
andante reserve $loop 7ms/10ms
echo "REPORT reserve_status $?"
echo "REPORT reserved $(share $loop 3)"
andante reserve --list
andante reserve --list --json
echo "REPORT contracts $(contracts)"
andante reserve --release $loop
echo "REPORT after $(share $loop 3)"
echo "REPORT contracts $(contracts)"
andante exec --reserve 4ms/10ms -- sh -c 'while :; do :; done' &
sleep 1
andante reserve --list
pid=$(andante reserve --list --json | grep process | tr -dc 0-9)
echo "REPORT execd $(share $pid 3)"
kill -9 $pid
sleep 0.5
echo "REPORT contracts $(contracts)"
andante exec --reserve 9ms/10ms -- true
echo "REPORT too_much $?"
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
kill $hogs
