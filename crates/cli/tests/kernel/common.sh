# SPDX-License-Identifier: GPL-2.0
# What the scripts share.

state() { cat /sys/kernel/sched_ext/state; }

sample() { # PID or PID/task/TID: CPU time that its threads have used, and the time [s]
	threads=/proc/$1
	[ ! -d "$threads/task" ] || threads=$threads/task/*
	cat $threads/schedstat /proc/uptime | awk 'NF == 3 { used += $1 / 1e9 } END { print used, $1 }'
}

parts() { # SECONDS PID…: the part of a CPU that each uses meanwhile, in a line each [%]
	seconds=$1
	shift
	for pid; do sample "$pid"; done >/tmp/before
	sleep "$seconds"
	for pid; do sample "$pid"; done | paste -d ' ' /tmp/before - |
		awk '{ print ($3 - $1) * 100 / ($4 - $2) }'
}

share() { # PID or PID/task/TID, SECONDS: the part of a CPU that it uses meanwhile [%]
	parts "$2" "$1"
}

contracts() { # how many there are
	andante reserve --list --json | grep -c '"uid"'
}

field() { # NAME: its last value in the list
	andante reserve --list --json | sed -n "s/.*\"$1\": \([^,]*\),*/\1/p" | tail -n 1
}

try() { # KEY COMMAND…: reports what it answers, in one line, with its status
	key=$1
	shift
	said=$("$@" 2>&1 </dev/null)
	echo "REPORT $key $? $(echo "$said" | tr -s ' \n' ' ')"
}

in_charge() { # OPTION…: starts Andante and waits until it is; ends the script if it never will be
	andante run --quiet "$@" &
	scheduler=$!
	while [ "$(state)" != enabled ]; do
		kill -0 $scheduler 2>/dev/null || exit 1
		sleep 0.01
	done
}

hogs=
hog() { # COUNT: endless loops; the last one is $last
	for _ in $(seq "$1"); do
		endless &
		last=$!
		hogs="$hogs $last"
	done
}
