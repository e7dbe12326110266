#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A device with contracts, as a terminal of 80 columns and 24 lines shows it.
. /andante/common.sh
class film 300
class bulk 100
class user.slice 100
class user.slice/user-1000.slice 100
class user.slice/user-1000.slice/call 200
long=user.slice/user-1000.slice/call
andante net attach out --rate 10mbit
andante run &
running=$!
while ! andante status --interval 0.05 >/dev/null 2>&1; do
	kill -0 $running
	sleep 0.1
done
there packets sink udp 0 600 1001 1002 1003 &
andante net reserve out /film 2mbit/40ms
andante exec --class film --reserve 9ms/33ms -- packets send 10.0.0.2 1001 1000 10000 600 &
andante exec --class $long --reserve-net 900kbit/40ms -- packets send 10.0.0.2 1002 1000 20000 600 &
in_class bulk packets send 10.0.0.2 1003 1400 1000 600 &
sleep 2

for screen in 'net status' 'status' 'reserve --list' 'status --all' 'top --once'; do
	/andante/bin/script -qec "stty cols 80 rows 24; /andante/bin/andante $screen" /dev/null </dev/null >/tmp/screen
	echo "SCREEN $screen"
	tr -d '\r' </tmp/screen | sed 's/\x1b\[[0-9;]*m//g' >/tmp/text
	cat /tmp/text
	# Characters of more than a byte are one column each.
	key=$(echo "$screen" | tr -d ' -')
	echo "REPORT wide_$key $(tr -d '\200-\277' </tmp/text | awk 'length > most { most = length } END { print most + 0 }')"
	echo "REPORT contracts_$key $(grep -cE '^(out:/|packets-)' /tmp/text || true)"
done
