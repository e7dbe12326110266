#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The command is killed while it attaches: before it has changed anything, when it is done, and, by halving the time
# between these, as near to the midst as a millisecond. What is left if it is hit is in command.sh: somebody has taken
# the discipline off by other means.
. /andante/common.sh
before=$(segments)
kept() { ls /sys/fs/bpf; }
nothing=0 midst=0 all=0
early=0 late=4096 # [ms]
while [ $((late - early)) -gt 1 ] && [ $midst = 0 ]; do
	after=$(((early + late) / 2))
	andante net attach out --rate 10mbit >/dev/null &
	attaching=$!
	sleep "$(printf '%d.%03d' $((after / 1000)) $((after % 1000)))"
	kill -9 $attaching 2>/dev/null || true
	wait $attaching || true
	if [ -z "$(kept)" ]; then
		nothing=$((nothing + 1))
		early=$after
	elif [ "$(qdisc)" = andante ]; then
		all=$((all + 1))
		late=$after
	else
		midst=$((midst + 1)) # that is rare
	fi
	andante net status
	andante net detach out || true
	same qdisc noqueue "$(qdisc)"
	same segments "$before" "$(segments)"
	same "what is kept" "" "$(kept)"
done
echo "REPORT nothing $nothing"
echo "REPORT all $all"
# Nobody's kind is left registered that would be in the way.
andante net attach out --rate 10mbit
same qdisc andante "$(qdisc)"
echo "REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount|unregister_netdevice')"
