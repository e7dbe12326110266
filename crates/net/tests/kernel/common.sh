# SPDX-License-Identifier: GPL-2.0
# What the scripts share: two hosts, here and there, on a link of ten Mbit/s; we send by the device `out`.
set -e

# The shell has small ones of its own.
ip() { /andante/bin/ip "$@"; }
tc() { /andante/bin/tc "$@"; }
there() { # COMMAND…: on the other host
	ip netns exec there "$@"
}

cgroups=/sys/fs/cgroup
class() { # NAME WEIGHT
	mkdir -p "$cgroups/$1"
	echo +cpu >"$(dirname "$cgroups/$1")/cgroup.subtree_control"
	echo "$2" >"$cgroups/$1/cpu.weight"
}

in_class() { # NAME COMMAND…
	name=$1
	shift
	sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$cgroups/$name" "$@"
}

echo +cpu >$cgroups/cgroup.subtree_control
ip netns add there
ip link add out type veth peer name in netns there
ip addr add 10.0.0.1/24 dev out
there /andante/bin/ip addr add 10.0.0.2/24 dev in
there /andante/bin/ip link set in up
there /andante/bin/ip link set lo up
ip link set out up
ip link set lo up

begin() { # [ARGUMENT…]: puts the discipline on the device
	mkfifo /andante/ends
	andante-net out=10000000 "$@" </andante/ends >/andante/said &
	loader=$!
	exec 9>/andante/ends
	until [ -s /andante/said ]; do
		kill -0 $loader || exit 1
		sleep 0.1
	done
	tc qdisc replace dev out root andante
}
