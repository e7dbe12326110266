#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Packets that come by `out` are placed in a class by the command: what is refused, what is dropped and told, and what
# the device is like behind, whatever becomes of the command, the device and the class.
. /andante/common.sh
class server 100
class inner/below 100

# Threads of the device's that are in the class, and how nice the first of them is.
threads() {
	for pid in $(cat $cgroups/server/cgroup.procs); do
		grep -q '^napi/' "/proc/$pid/comm" && echo "$pid" || true
	done
}
is() { # KEY: what the device is like
	echo "REPORT $1_threaded $(cat /sys/class/net/out/threaded)"
	echo "REPORT $1_in_class $(threads | grep -c . || true)"
	echo "REPORT $1_files $(ls /run/andante/net 2>/dev/null | grep -c . || true)"
}
said() { # WORDS: until the command has said so
	tries=0
	until grep -q "$1" /andante/said; do
		tries=$((tries + 1))
		[ $tries -le 600 ] && kill -0 $placing || { cat /andante/said && exit 1; }
		sleep 0.05
	done
}
begin() { # OPTION…
	andante net receive out "$@" >/andante/said 2>&1 &
	placing=$!
}
ends() { # KEY: with which status
	status=0
	wait $placing || status=$?
	cat /andante/said
	echo "REPORT $1 $status"
}
new_threads() { # the class has some
	tries=0
	until [ -n "$(threads)" ]; do
		tries=$((tries + 1))
		[ $tries -le 200 ] || exit 1
		sleep 0.05
	done
}

is before
try no_device andante net receive nowhere --class server
try loopback andante net receive lo --class server
try no_class andante net receive out --class nothing
try inner andante net receive out --class inner
try no_word andante net receive out
try no_hook andante net receive out --class server --hook middle
mkdir -p /etc
echo 'kim:x:1000:1000::/:/bin/sh' >/etc/passwd
try unprivileged su kim -c '/andante/bin/andante net receive out --class server'
is refused

# A socket that nobody reads: what it has no room for is dropped early and told of its class.
begin --class server --last
said 'are the work of /server, last'
is placed
echo "REPORT placed_nice $(cut -d' ' -f19 "/proc/$(threads | head -n1)/stat")"
try taken andante net receive out --class server
in_class server packets sink udp 0 600 5000 >/dev/null &
sleep 0.5
sink=$(pidof packets)
kill -STOP "$sink"
there packets send 10.0.0.1 5000 200 200 2
sleep 0.5
andante net status
andante net status --json >/andante/status
told() { # FIELD: of what was dropped for the class
	sed -n "/\"receive\"/,\$s/.*\"$1\": \([0-9]*\),*/\1/p" /andante/status
}
echo "REPORT dropped $(told packets)"
echo "REPORT dropped_bytes $(told bytes)"
echo "REPORT status_class $(sed -n '/"drops"/,$p' /andante/status | grep -c '"class": "/server"')"
# The device goes down and comes up with new threads.
ip link set out down
ip link set out up
new_threads
is up_again
kill -TERM $placing
ends ended
is behind
echo "REPORT told_at_the_end $(awk '$1 == "/server" { print $2 }' /andante/said)"

# Killed: the command says so, and the next that begins puts back what was there before.
begin --class server
said 'are the work of'
kill -9 $placing
wait $placing || true
is killed
andante net status | grep 'andante net restore'
andante net restore
is restored
andante net restore | grep 'Nothing is left'
begin --class server --hook nowhere
said 'nothing is dropped early'
kill -9 $placing
wait $placing || true
# As a file says, with the capabilities that the unit has.
printf '[net.out]\nreceive = "/server"\nreceive_last = true\nreceive_hook = "ingress"\n' >/etc/andante.toml
may=$(sed -n 's/^CapabilityBoundingSet=//p' /andante/receive-unit | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
/andante/bin/setpriv --bounding-set "-all,$may" andante net receive out >/andante/said 2>&1 &
placing=$!
said 'are the work of /server, last.*at the ingress'
kill -INT $placing
ends interrupted
is by_file

# One of another network namespace, with files and cgroups of its own, is its own to put back.
there_too() { # COMMAND…
	there sh -c 'mount -t cgroup2 none /sys/fs/cgroup && exec "$@"' sh "$@"
}
there_too andante net receive in --class server >/andante/said 2>&1 &
placing=$!
said 'are the work of'
kill -9 "$(pidof andante)"
wait $placing || true
andante net restore | grep 'Nothing is left'
is elsewhere
there_too andante net restore | grep 'in is as it was'
is neither

# The device is down at first.
ip link set out down
begin
said 'out is down'
ip link set out up
said 'are the work of'
new_threads
# The class goes, which it can while the device is down.
kill -KILL "$sink"
ip link set out down
until rmdir $cgroups/server 2>/dev/null; do sleep 0.05; done
ip link set out up
ends class_gone
mkdir $cgroups/server
is without_class
# And the device.
begin
said 'are the work of'
ip link del out
ends device_gone
echo "REPORT left $(ls /run/andante/net | grep -c . || true)"
echo "REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount|unregister_netdevice')"
