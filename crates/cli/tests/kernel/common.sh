# SPDX-License-Identifier: GPL-2.0
# What the scripts share.

state() { cat /sys/kernel/sched_ext/state; }

# The daemon's open files that it keeps: the fewest of some looks, for it has others open for a moment as it reads them.
files() {
	for _ in 1 2 3 4 5; do
		ls "/proc/$scheduler/fd" | wc -l
		sleep 0.05
	done | sort -n | head -n 1
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

given() { # does what the test gives; here the machine is saved, and others go on with something else
	/andante/init receive order || exit 1
	. /andante/given
}

# OPTION…: starts Andante and waits until it is in charge; ends the script if it never will be. Looking every
# 10 ms, with a process for that, took more than the loading beside it on several CPUs.
in_charge() {
	andante run --quiet "$@" &
	scheduler=$!
	while read -r now </sys/kernel/sched_ext/state && [ "$now" != enabled ]; do
		kill -0 $scheduler 2>/dev/null || exit 1
		sleep 0.05
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
