#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Two processors, and two devices, each with two senders of datagrams in two classes, while classes come and go on both
# and a weight is turned there and back.
. /andante/common.sh
ip link add second type veth peer name in2 netns there
ip addr add 10.0.1.1/24 dev second
there /andante/bin/ip addr add 10.0.1.2/24 dev in2
there /andante/bin/ip link set in2 up
ip link set second up
class light 100
class heavy 300
class turned 100
andante net attach out --rate 10mbit
andante net attach second --rate 10mbit
there packets sink udp 2 8 1101 1102 1103 1104 &
sink=$!
in_class light packets send 10.0.0.2 1101 1000 400 11 &
in_class heavy packets send 10.0.0.2 1102 1000 400 11 &
in_class light packets send 10.0.1.2 1103 1000 400 11 &
in_class heavy packets send 10.0.1.2 1104 1000 400 11 &
in_class turned packets send 10.0.0.2 1109 100 1000 10 &
for round in $(seq 10); do
	echo $((round % 2 ? 1000 : 10)) >$cgroups/turned/cpu.weight
	for i in 1 2 3 4; do
		class "come$i" 10
		in_class "come$i" packets send "10.0.$((i % 2)).2" 1108 100 20000 1 &
	done
	wait $!
	sleep 0.1
	rmdir $cgroups/come* 2>/dev/null || sleep 0.1
done
wait $sink
echo "REPORT processors $(grep -c ^processor /proc/cpuinfo)"
andante net status
andante net detach out
andante net detach second
[ -e /sys/fs/bpf/andante ] && echo "REPORT left 1" || echo "REPORT left 0"
echo "REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount|stall|deadlock')"
