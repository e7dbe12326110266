#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A network card that takes a packet in a millisecond, and says so (byte queue limits): two senders of datagrams as one to
# three, and a film that asks for little; then the same film beside them under fq_codel, ports 13xx.
. /andante/hosts.sh
set -- $(ls -d /sys/class/net/*/device | cut -d/ -f5)
near=$1 far=$2
ip link set "$far" netns there
ip addr add 10.0.0.1/24 dev "$near"
there /andante/bin/ip addr add 10.0.0.2/24 dev "$far"
there /andante/bin/ip link set "$far" up
ip link set "$near" up
ip link set lo up
class light 100
class heavy 300
class film 100
senders() { # PORTS
	there packets sink udp 2 6 "$1"01 "$1"02 "$1"03 &
	sink=$!
	in_class light packets send 10.0.0.2 "$1"01 1000 400 8 &
	in_class heavy packets send 10.0.0.2 "$1"02 1000 400 8 &
	in_class film packets send 10.0.0.2 "$1"03 1000 10000 8 &
	wait $sink
	wait
}
andante net attach "$near"
senders 12
andante net status
andante net detach "$near"
tc qdisc replace dev "$near" root fq_codel
senders 13
[ -e /sys/fs/bpf/andante ] && echo "REPORT left 1" || echo "REPORT left 0"
echo "REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount')"
