# SPDX-License-Identifier: GPL-2.0
# All scripts that test reserved memory begin with this.
set -e

cgroups=/sys/fs/cgroup
state=/run/andante/memory.json
mkdir -p /run

try() { # KEY COMMAND…: reports the status that it ends with, and shows what it says
	key=$1
	shift
	status=0
	"$@" || status=$?
	echo "REPORT $key $status"
}
report() { # KEY NUMBER
	echo "REPORT $1 $2"
}
mib() { # FILE: a number of bytes as MiB
	echo $(($(cat "$1") >> 20))
}
min() { # CLASS
	mib "$cgroups/$1/memory.min"
}
until_is() { # WANTED COMMAND…: waits until the command says that, for ten seconds
	wanted=$1
	shift
	tries=0
	while [ "$("$@")" != "$wanted" ]; do
		tries=$((tries + 1))
		if [ $tries -gt 100 ]; then
			echo "$* says $("$@") and not $wanted"
			exit 1
		fi
		sleep 0.1
	done
}
begin() { # OPTION…: andante run
	andante run "$@" >/andante/run.log 2>&1 &
	daemon=$!
	tries=0
	until andante reserve --list >/dev/null 2>&1; do
		tries=$((tries + 1))
		if [ $tries -gt 300 ]; then
			cat /andante/run.log
			exit 1
		fi
		sleep 0.1
	done
}
end() {
	kill -INT "$daemon"
	wait "$daemon" || true
}
keeper() { # its number
	grep -l '^andante-memory$' /proc/[0-9]*/comm 2>/dev/null | sed 's/[^0-9]//g'
}
in_class() { # NAME COMMAND…
	name=$1
	shift
	sh -c 'echo $$ >"$0/cgroup.procs"; exec "$@"' "$cgroups/$name" "$@"
}
