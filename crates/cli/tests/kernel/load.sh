#!/bin/sh
# How long the scheduler takes to be in charge, on an otherwise idle machine [virtual s].
uptime() { cut -d' ' -f1 /proc/uptime; }
began=$(uptime)
andante run --quiet &
while [ "$(cat /sys/kernel/sched_ext/state)" != enabled ]; do sleep 0.01; done
ended=$(uptime)
echo "REPORT load_s $(awk "BEGIN { print $ended - $began }")"
kill -INT $!
wait $!
