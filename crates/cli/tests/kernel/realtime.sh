#!/bin/sh
# How long a task waits at most that a real-time task has woken, when that has interrupted a loop:
# without learnt contracts, with them, and under a historical policy [virtual µs].
. /andante/common.sh
for options in '--learn 0' '--learn 50' '--policy svr4-ts'; do
	# shellcheck disable=SC2086
	in_charge $options
	hog 1
	echo "REPORT waited_us $options $(realtime 200)"
	kill $hogs
	hogs=
	kill -INT $scheduler
	wait $scheduler
done
