# SPDX-License-Identifier: GPL-2.0
# All scripts that test disks begin with this.
set -e

# Whoever waits for a disk that nobody serves any more would keep the machine from its end.
trap '[ $? = 0 ] || echo o >/proc/sysrq-trigger' EXIT
cgroups=/sys/fs/cgroup
run=/run/andante/disk
mkdir -p /run /tmp/memory
mount -t tmpfs none /tmp/memory
cd /tmp/memory

report() { # KEY NUMBER
	echo "REPORT $1 $2"
}
try() { # KEY COMMAND…: reports the status that it ends with, and shows what it says
	key=$1
	shift
	status=0
	"$@" || status=$?
	report "$key" $status
}
count() { # PATTERN FILE: lines with it
	grep -c "$1" "$2" || true
}
until_true() { # COMMAND…: waits until that is so, for thirty seconds
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		if [ $tries -gt 300 ]; then
			echo "never: $*"
			cat /tmp/memory/*.log
			exit 1
		fi
		sleep 0.1
	done
}
attach() { # LOG ARGUMENT…: in the background, as $server
	log=$1
	shift
	andante disk attach "$@" >"$log" 2>&1 &
	server=$!
	until_true grep -q 'takes it off' "$log"
}
handed_on() { # classes that hand the io controller on
	cat $(find $cgroups -name cgroup.subtree_control) | grep -cw io || true
}
left() { # what is kept, besides locks
	find $run -name '*.json' | wc -l
}
echo '+cpu +memory -io' >$cgroups/cgroup.subtree_control
