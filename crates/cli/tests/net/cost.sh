#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The cost of a packet that finds nothing waiting, on a device that throws all away, and of one that waits for its turn on
# a link of 500 megabits: virtual time counts instructions. Port 1 is fq_codel, 2 is fq, and 10 + d is ours in
# a class at depth d.
. /andante/common.sh
ip link add null type dummy
ip addr add 10.9.0.1/24 dev null
ip link set null up
path=
for depth in 1 2 3 4 5; do
	path=$path${path:+/}level
	class "$path" 100
done
cost() { # CLASS PORT
	in_class "$1" packets cost 10.9.0.2 "$2" 100 20000
}
# 400 packets of 1,442 bytes take ten milliseconds, of which a link that was free sends a tenth at once.
waits() { # CLASS PORT
	in_class "$1" packets waits 10.9.0.2 "$2" 1400 8000 20000
}
tc qdisc replace dev null root fq_codel
class other 100
cost other 1
tc qdisc replace dev null root fq
cost other 2
tc qdisc replace dev null root handle 1: tbf rate 500mbit burst 1600 limit 1000000
tc qdisc replace dev null parent 1: fq_codel
waits other 1
tc qdisc del dev null root
andante net attach null --rate 100gbit
path=
for depth in 1 2 3 4 5; do
	path=$path${path:+/}level
	mkdir $cgroups/$path/in
	cost $path/in $((10 + depth))
done
andante net detach null
andante net attach null --rate 500mbit
path=
for depth in 1 2 3 4 5; do
	path=$path${path:+/}level
	waits $path/in $((10 + depth))
done
