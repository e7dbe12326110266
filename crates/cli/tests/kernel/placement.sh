#!/bin/sh
# Contracts on two CPUs: one moves when its CPU leaves; a third one is split, and finds its place
# again when that CPU is back.
cpu() { echo "$2" >"/sys/devices/system/cpu/cpu$1/online"; }
hog 3
three=$hogs
hog 6
set -- $three
andante reserve "$1" 6ms/10ms
andante reserve "$2" 3ms/10ms
andante reserve --release "$1"
echo "REPORT moves $(parts 2 "$2")"
cpu 1 0
sleep 1.5
echo "REPORT moves $(parts 2 "$2")"
andante reserve --list | sed 's/^/LIST /'
cpu 1 1
andante reserve --release "$2"

for loop in $three; do
	andante reserve "$loop" 5ms/10ms
done
echo "REPORT split $(andante reserve --list --json | grep -c '"split"')"
parts 2 $three | sed 's/^/REPORT before /'
cpu 1 0
sleep 2.5
echo "REPORT contracts $(contracts)"
echo "REPORT homeless $(andante reserve --list --json | grep -c '"placement": null')"
parts 2 $three | sed 's/^/REPORT gone /'
cpu 1 1
sleep 2.5
echo "REPORT homeless_again $(andante reserve --list --json | grep -c '"placement": null')"
parts 2 $three | sed 's/^/REPORT after /'
echo "REPORT state $(state)"

# Again and again, since what CPUs do to each other meanwhile is a matter of nanoseconds.
for _ in $(seq 10); do
	for loop in $three; do
		andante reserve --release "$loop"
	done
	for loop in $three; do
		andante reserve "$loop" 5ms/10ms
	done
	parts 2 $three | sed 's/^/REPORT anew /'
done | grep REPORT
kill $hogs
sleep 0.5
echo "REPORT contracts $(contracts)"
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
exit 0
