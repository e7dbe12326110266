#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A film's packets beside five senders that want more than the link has, under what others put there by
# hand. Port DISCIPLINE + 6 is the film's.
. /andante/common.sh
class film 100
for n in 1 2 3 4 5; do
	class bulk$n 100
done
beside() { # FIRST_PORT: with what is on the device
	first=$1
	there packets sink udp 2 5 $((first + 1)) $((first + 6)) &
	sink=$!
	for n in 1 2 3 4 5; do
		in_class bulk$n packets send 10.0.0.2 $((first + n)) 1472 1000 7 &
	done
	in_class film packets send 10.0.0.2 $((first + 6)) 1000 10000 7 &
	wait $sink
	sleep 1
}
tc qdisc add dev out root handle 1: tbf rate 10mbit burst 3000 limit 400000
beside 1000
tc qdisc del dev out root
tc qdisc add dev out root handle 1: tbf rate 10mbit burst 3000 limit 400000
tc qdisc add dev out parent 1: fq_codel
beside 2000
tc qdisc del dev out root
tc qdisc add dev out root cake bandwidth 10mbit
beside 3000
tc qdisc del dev out root
tc qdisc add dev out root handle 1: htb default 2
tc class add dev out parent 1: classid 1:1 htb rate 10mbit burst 3000
tc class add dev out parent 1:1 classid 1:2 htb rate 9mbit ceil 10mbit prio 1 burst 3000
tc class add dev out parent 1:1 classid 1:3 htb rate 1mbit ceil 10mbit prio 0 burst 3000
tc filter add dev out parent 1: protocol ip u32 match ip dport 4006 0xffff flowid 1:3
beside 4000
tc qdisc del dev out root
andante net attach out --rate 10mbit
beside 5000
