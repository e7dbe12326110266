#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Five senders of datagrams in a tree of classes: four that want more than the link has, and leave the CPU
# to others, and a film that asks for little.
. /andante/common.sh
class a 100
class b 100
class c 300
class film 300
class a/x 100
class a/y 300
andante net attach out --rate 10mbit
there packets sink udp 2 10 1001 1002 1003 1004 1005 &
sink=$!
in_class a/x packets send 10.0.0.2 1001 1400 400 13 &
in_class a/y packets send 10.0.0.2 1002 1400 400 13 &
in_class b packets send 10.0.0.2 1003 1400 400 13 &
in_class c packets send 10.0.0.2 1004 700 400 13 &
in_class film packets send 10.0.0.2 1005 1000 10000 13 &
wait $sink
tc -s qdisc show dev out
andante net status
look
for field in weight packets bytes dropped_late dropped_crowded p99_below_us; do
	echo "REPORT film_$field $(seen film $field)"
done
echo "REPORT crowded $(seen b dropped_crowded)"
