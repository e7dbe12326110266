# SPDX-License-Identifier: GPL-2.0
# The scripts begin with this: two hosts, here and there, on a link of ten Mbit/s; we send by the device `out`.
. /andante/hosts.sh

ip link add out type veth peer name in netns there
ip addr add 10.0.0.1/24 dev out
there /andante/bin/ip addr add 10.0.0.2/24 dev in
there /andante/bin/ip link set in up
there /andante/bin/ip link set lo up
ip link set out up
ip link set lo up

try() { # KEY COMMAND…: reports the status that it ends with, and shows what it says
	key=$1
	shift
	status=0
	"$@" || status=$?
	echo "REPORT $key $status"
}

qdisc() { # the kind that is at the root of `out`
	tc qdisc show dev out | sed -n 's/^qdisc \([^ ]*\) .*root.*/\1/p'
}
segments() {
	ip -d link show out | sed -n 's/.*gso_max_size \([0-9]*\).*/\1/p'
}
look() { # at all counts of classes, for `seen`
	andante net status --json >/andante/status
}
seen() { # CLASS FIELD: at the last look
	sed -n "/\"class\": \"\/$1\"/,/p99/s/.*\"$2\": \([0-9]*\),*/\1/p" /andante/status
}
same() { # NAME WANTED FOUND
	[ "$2" = "$3" ] && return
	echo "$1 is $3 and not $2"
	exit 1
}
