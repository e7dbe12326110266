# SPDX-License-Identifier: GPL-2.0
# The tests of packets in begin with this. A host there floods this one by the device `in`: it has sent all of it before
# anything is measured, and its discipline lets so many go in a millisecond. What that takes is the machine's own, and
# is measured alone with a device `gone` that drops what it is given.
. /andante/hosts.sh

class flood 100
class film 100
class loop 100
ip link add in address 02:00:00:00:00:01 type veth peer name out address 02:00:00:00:00:02 netns there
there /andante/bin/ip link add gone type dummy
ip addr add 10.0.0.1/24 dev in
there /andante/bin/ip addr add 10.0.0.2/24 dev out
there /andante/bin/ip addr add 10.0.1.2/24 dev gone
ip link set lo up
ip link set in up
for device in out gone; do
	there /andante/bin/ip link set $device up
	there receive plain $device
	there /andante/bin/ip link set $device gso_max_segs 1
done
# Nobody is asked for an address while packets wait.
there /andante/bin/ip neigh add 10.0.0.1 lladdr 02:00:00:00:00:01 dev out
ip neigh add 10.0.0.2 lladdr 02:00:00:00:00:02 dev in
speed=$(receive speed)

# Packets of one call, as receive.c sends them, how often some go [ms], and what one takes itself then, about [ns].
at_once=20
slot=2
takes=1300
# Everything has been sent by then [ms].
ready=1500

flood() { # DEVICE ADDRESS KPPS FOR_MS: of one that lasts so long, a little before and behind; FROM is when it can be measured
	begun=$(receive now)
	from=$((begun + ready))
	pause=$((slot * (1000000 - $3 * takes) / 1000))us
	ip netns exec there /andante/bin/tc qdisc replace dev "$1" root netem delay $((ready - 100))ms \
		slot $pause $pause packets $(($3 * slot / at_once)) limit 1000000
	there receive flood "$2" 5000 200 $(($3 * ($4 + 200)))
	sent=$(receive now)
	[ "$sent" -lt $((from - 600)) ] || exit 1
}
no_flood() { from=$(($(receive now) + 1000)); }

usage() { sed -n 's/^usage_usec //p' "$cgroups/$1/cpu.stat"; }
datagrams() { # taken by sockets, or refused late
	awk '/^Udp: [0-9]/ { sum += $2 + $6 } /^Udp6(InDatagrams|RcvbufErrors) / { sum += $2 } END { print sum }' \
		/proc/net/snmp /proc/net/snmp6
}

others() { # NAME FOR_MS: a film that wants nine of each thirty-three milliseconds, and a loop
	in_class film receive film $((9 * speed)) $from "$2" "$1" &
	film=$!
	in_class loop receive loop $from "$2" "$1" &
	loop=$!
}
measured() { # NAME FOR_MS READER_TURNS READER_PAUSE_US
	in_class flood receive reader 5000 "$3" "$4" $from "$2" "$1" &
	reader=$!
	udp=$(datagrams)
	used=$(usage flood)
	wait $reader $film $loop
	film= loop=
	echo "REPORT $1_udp $(($(datagrams) - udp))"
	echo "REPORT $1_flood_us $(($(usage flood) - used))"
	sleep 0.5
	there /andante/bin/tc qdisc del dev out root 2>/dev/null || true
	there /andante/bin/tc qdisc del dev gone root 2>/dev/null || true
}

place() { # equal|last [driver|ingress|nowhere]: packets of the device are the flooded class's work
	mkfifo /andante/ends
	andante-receive in $cgroups/flood "$@" </andante/ends >/andante/said &
	placed=$!
	exec 9>/andante/ends
	until [ -s /andante/said ]; do
		kill -0 $placed || exit 1
		sleep 0.05
	done
}
told() { # what is dropped early, of all
	echo >&9
	until grep -q told /andante/said; do sleep 0.05; done
	awk '$1 == "dropped" { sum += $3 } END { print 0 + sum }' /andante/said
}
displace() {
	exec 9>&-
	wait $placed || exit 1
	rm /andante/ends /andante/said
}

in_charge() { # Andante schedules
	andante run --quiet &
	scheduler=$!
	while read -r now </sys/kernel/sched_ext/state && [ "$now" != enabled ]; do
		kill -0 $scheduler || exit 1
		sleep 0.05
	done
}
