#!/bin/sh
# How long a task waits at most that a real-time task has woken, when that has interrupted a loop
# [virtual µs].
hog 1
set -- $(realtime 200)
echo "REPORT waited_us $1"
echo "REPORT longest_us $2"
kill $hogs
kill -INT $scheduler
wait $scheduler
