#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The class of a packet is its socket's, however it comes to the device: by IPv6 (3 packets), from a VLAN and through a
# tunnel (100 each). Those of a container whose network has a bridge before ours are forwarded, hence the root's.
. /andante/common.sh
andante net attach out --rate 10mbit
passes() { # CLASS ADDRESS [NETWORK]
	class "$1" 100
	if [ "$3" ]; then
		in_class "$1" /andante/bin/ip netns exec "$3" packets send "$2" 1400 100 10000 1
	else
		in_class "$1" packets send "$2" 1400 100 10000 1
	fi
}

ip addr add fd00::1/64 dev out nodad
there /andante/bin/ip addr add fd00::2/64 dev in nodad
class six 100
in_class six ping -6 -q -c 3 fd00::2

ip link add link out name out.7 type vlan id 7
ip addr add 10.0.7.1/24 dev out.7
ip link set out.7 up
there /andante/bin/ip link add link in name in.7 type vlan id 7
there /andante/bin/ip addr add 10.0.7.2/24 dev in.7
there /andante/bin/ip link set in.7 up
passes vlan 10.0.7.2

ip link add tunnel type vxlan id 7 local 10.0.0.1 remote 10.0.0.2 dstport 4789 dev out
ip addr add 10.0.8.1/24 dev tunnel
ip link set tunnel up
there /andante/bin/ip link add tunnel type vxlan id 7 local 10.0.0.2 remote 10.0.0.1 dstport 4789 dev in
there /andante/bin/ip addr add 10.0.8.2/24 dev tunnel
there /andante/bin/ip link set tunnel up
passes tunnel 10.0.8.2

ip netns add box
ip link add bridge type bridge
ip addr add 10.0.9.1/24 dev bridge
ip link set bridge up
ip link add plug type veth peer name socket netns box
ip link set plug master bridge up
ip -n box addr add 10.0.9.2/24 dev socket
ip -n box link set socket up
ip -n box route add default via 10.0.9.1
echo 1 >/proc/sys/net/ipv4/ip_forward
there /andante/bin/ip route add 10.0.9.0/24 via 10.0.0.1
look
root=$(seen "" packets)
passes box 10.0.0.2 box

andante net status
look
for class in six vlan tunnel; do
	echo "REPORT $class $(seen $class packets)"
done
echo "REPORT forwarded $(($(seen "" packets) - root))"
