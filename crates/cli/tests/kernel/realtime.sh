#!/bin/sh
# How long a task waits at most that a real-time task has woken, when that has interrupted a loop:
# without learnt contracts, and with them [virtual µs].
. /andante/common.sh
for learn in 0 50; do
	in_charge --learn $learn
	hog 1
	echo "REPORT waited_us_$learn $(realtime 200)"
	kill $hogs
	hogs=
	kill -INT $scheduler
	wait $scheduler
done
