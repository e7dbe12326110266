#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A real-time loop under svr4-rt starves everybody on this CPU, until the kernel's watchdog takes the
# scheduler out of charge on behalf of an ordinary loop.
. /andante/common.sh
hog 1
andante run --quiet --policy svr4-rt 2>/tmp/said &
scheduler=$!
while [ "$(state)" != enabled ]; do sleep 0.01; done
begun=$(awk '{ print $1 }' /proc/uptime)
nice -n -15 sh -c 'while :; do :; done' &
hog=$!
wait $scheduler
echo "REPORT left_with $?"
echo "REPORT after_s $(awk -v begun="$begun" '{ print $1 - begun }' /proc/uptime)"
echo "REPORT said $(tr -s ' \n' ' ' </tmp/said)"
echo "REPORT state $(state)"
kill -0 $hog && echo "REPORT hog_alive 1"
in_charge --policy svr4-rt
kill $hog $last
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
exit 0
