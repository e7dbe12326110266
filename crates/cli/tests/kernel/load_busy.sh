#!/bin/sh
# How long the scheduler took to be in charge beside eight busy loops [virtual s], what was said meanwhile, and
# as what the process that loaded it goes on.
. /andante/common.sh
hog 8
sleep 0.5
read -r began _ </proc/uptime
andante run --verbose >/tmp/out 2>/tmp/said &
scheduler=$!
while read -r now </sys/kernel/sched_ext/state && [ "$now" != enabled ]; do
	kill -0 $scheduler 2>/dev/null || exit 1
	sleep 0.05
done
read -r ended _ </proc/uptime
echo "REPORT load_s $(awk "BEGIN { print $ended - $began }")"
sleep 1
while read -r said; do echo "REPORT said $said"; done </tmp/said
while read -r said; do echo "REPORT out $said"; done </tmp/out
# /proc/PID/stat, counted from behind the name: priority, and policy; both are 0 for those that are as everybody.
echo "REPORT as $(sed 's/.*) //' /proc/$scheduler/stat | cut -d' ' -f38,39)"
echo "REPORT nice $(sed 's/.*) //' /proc/$scheduler/stat | cut -d' ' -f17)"
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
kill $hogs
