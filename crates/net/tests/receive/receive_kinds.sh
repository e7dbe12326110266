#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Which packets are dropped early, and what a device is like before, behind, and when the process is killed.
. /andante/receive.sh
ms=500
slowly="0 1000"
is() { # KEY: what the device is like
	echo "REPORT $1_threaded $(cat /sys/class/net/in/threaded)"
	echo "REPORT $1_gro $(receive gro in)"
	echo "REPORT $1_in_class $(grep -c . $cgroups/flood/cgroup.procs || true)"
	echo "REPORT $1_files $(ls /run/andante/net | wc -l)"
}
fails() { # KEY WORDS DEVICE CLASS
	said=$(andante-receive "$3" "$4" equal 2>&1 </dev/null) && exit 1
	echo "REPORT $1 $(echo "$said" | grep -c "$2")"
}
mkdir -p /run/andante/net
is before
fails no_device "there is no device" nothing $cgroups/flood
fails no_napi "takes no packets from a driver" lo $cgroups/flood
fails no_class "does not take the threads" in $cgroups/nothing
is refused

place equal
is placed
fails taken "are placed already" in $cgroups/flood
kill -9 $placed
wait $placed || true
exec 9>&-
rm /andante/ends /andante/said
is killed
andante-receive restore
is restored

# By IPv6, to the same socket.
ip -6 addr add fd00::1/64 dev in nodad
there /andante/bin/ip -6 addr add fd00::2/64 dev out nodad
ip -6 neigh add fd00::2 lladdr 02:00:00:00:00:02 dev in
there /andante/bin/ip -6 neigh add fd00::1 lladdr 02:00:00:00:00:01 dev out
place equal
flood out fd00::1 50 $ms
measured six $ms $slowly
echo "REPORT six_early $(told)"

# To another host, of the same port: on its way none is dropped, while those to us are.
: >/andante/said
echo 1 >/proc/sys/net/ipv4/ip_forward
ip link add further type dummy
ip addr add 10.0.2.1/24 dev further
ip link set further up
there /andante/bin/ip route add 10.0.2.0/24 via 10.0.0.1
flood out 10.0.0.1 50 $ms
there receive flood 10.0.2.9 5000 200 2000
measured forwarded $ms $slowly
sleep 1
echo "REPORT forwarded_further $(cat /sys/class/net/further/statistics/tx_packets)"
echo "REPORT forwarded_early $(told)"
displace
is behind

# In the driver, which has a smaller part of each packet in memory by then; and nowhere.
for at in driver nowhere; do
	place equal $at
	echo "REPORT ${at}_there $(grep -c "ready $at" /andante/said)"
	flood out 10.0.0.1 50 $ms
	measured $at $ms $slowly
	echo "REPORT ${at}_early $(told)"
	displace
done

# What stands on the device may have packets of its own: the tag of a VLAN is seen at the ingress alone, and what a
# bridge passes on is nobody's here.
ip link add link in name tagged type vlan id 5
place equal driver
echo "REPORT vlan_at_ingress $(grep -c "ready ingress" /andante/said)"
displace
ip link del tagged
ip link add bridge type bridge
ip link set in master bridge
place equal
echo "REPORT bridge_nowhere $(grep -c "ready nowhere" /andante/said)"
displace
ip link set in nomaster

# The device goes down and comes up with a new thread; then it is gone before we are.
place equal
ip link set in down
ip link set in up
told >/dev/null
is up_again
ip link del in
displace
echo "REPORT gone_files $(ls /run/andante/net | wc -l)"
echo "REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount|unregister_netdevice')"
