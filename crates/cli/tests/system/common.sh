# SPDX-License-Identifier: GPL-2.0
# What the scripts share.

# The machine's time, on the console.
at() {
	echo "AT $(cut -d' ' -f1 /proc/uptime) $*"
}

# Who is in charge according to the kernel: disabled, or enabled and the name of the scheduler.
charge() {
	now=$(cat /sys/kernel/sched_ext/state)
	[ "$now" = disabled ] || now="$now $(cat /sys/kernel/sched_ext/root/ops 2>/dev/null)"
	echo "$now"
}

unit() { # KEY: reports what systemd and the kernel say of the service
	echo "REPORT $1 $(systemctl show -P ActiveState andante) $(charge)"
}

# COMMAND…: again and again until it succeeds, for half a minute of the machine's time.
until_true() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -le 300 ] || return 1
		sleep 0.1
	done
}

is() { # STATE: the service's
	[ "$(systemctl show -P ActiveState andante)" = "$1" ]
}

settled() { # the service is in charge, or was given up
	is active || is failed
}

in_charge_is() { # STATE: the kernel's
	[ "$(cat /sys/kernel/sched_ext/state)" = "$1" ]
}
