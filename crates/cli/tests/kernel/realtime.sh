#!/bin/sh
# How long a task waits at most that a real-time task has woken, when that has interrupted a loop
# [virtual µs].
hog 1
# CPU time of the daemon [ns], which comes before all others.
of_daemon() {
	cut -d ' ' -f 1 "/proc/$scheduler/schedstat"
}
used=$(of_daemon)
began=$(uptime)
set -- $(realtime 200)
echo "REPORT daemon_part $(awk "BEGIN { print ($(of_daemon) - $used) / 1e9 / ($(uptime) - $began) }")"
echo "REPORT waited_us $1"
echo "REPORT longest_us $2"
kill $hogs
kill -INT $scheduler
wait $scheduler
