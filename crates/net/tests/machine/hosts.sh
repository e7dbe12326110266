# SPDX-License-Identifier: GPL-2.0
# The beginning of all scripts that test packets: tools, a host `there`, and classes here.
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
