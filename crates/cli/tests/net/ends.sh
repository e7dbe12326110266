#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Nobody stays who has put the discipline on the device; its classes come and go, until the device does.
. /andante/common.sh
andante net attach out --rate 10mbit
class a 100
pass() { # NAME PORT
	there packets sink udp 0 2 "$2" &
	sink=$!
	sleep 0.2
	in_class "$1" packets send 10.0.0.2 "$2" 1000 10000 1
	wait $sink
}
pass a 3001
for i in $(seq 30); do # with sockets of their own, each in a class of its own
	class "b$i" 100
	in_class "b$i" packets send 10.0.0.2 3009 100 5000 1 &
	last=$!
done
wait $last
sleep 0.5
rmdir $cgroups/b*
pass a 3002
andante net status
# Packets wait in it as it goes.
in_class a packets send 10.0.0.2 3009 1400 0 3 &
sleep 1
ip link del out
sleep 1
try gone andante net detach out
[ -e /sys/fs/bpf/andante ] && echo "REPORT left 1" || echo "REPORT left 0"
# Says the kernel that anything was wrong?
echo "REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount|unregister_netdevice')"
