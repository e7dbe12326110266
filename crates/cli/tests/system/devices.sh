# SPDX-License-Identifier: GPL-2.0
# The units of a network device as udev and systemd start and end them: it appears, goes, and appears again.
. /andante/common.sh
ip() { /andante/bin/ip "$@"; }
tc() { /andante/bin/tc "$@"; }
dpkg -i /andante/packages/andante.deb >/dev/null
cat >/etc/andante.toml <<'END'
[net.uplink]
rate = "10mbit"
replace = true
receive = "/server.slice"

[net.uplink.weights]
"/server.slice" = 50
"/not_there.slice" = 10
END
printf '[Slice]\nCPUWeight=70\n' >/etc/systemd/system/server.slice
systemctl daemon-reload
systemctl start server.slice
out='andante-net@uplink'
in='andante-receive@uplink'

appears() {
	ip link add uplink type veth peer name far
	ip link set far up
	ip link set uplink up
}
state() { # UNIT
	systemctl show -P ActiveState "$1"
}
state_is() { # UNIT STATE
	[ "$(state "$1")" = "$2" ]
}
ended() { # UNIT: as it should, or not
	state_is "$1" inactive || state_is "$1" failed
}
qdisc() { # what packets leave by
	ip link show uplink | sed -n 's/.* qdisc \([^ ]*\).*/\1/p'
}
segments() {
	ip -d link show uplink | sed -n 's/.*gso_max_size \([0-9]*\).*/\1/p'
}
threads() { # of the device's that are in the class
	for pid in $(cat /sys/fs/cgroup/server.slice/cgroup.procs); do
		grep '^napi/' "/proc/$pid/comm"
	done | wc -l
}
have_threads() {
	[ "$(threads)" -ge 1 ]
}
out_is() { # KEY: the unit of packets out, what they leave by, how fast, and what is pinned
	rate=$(andante net status --json | sed -n 's/.*"rate_bits": \([0-9]*\).*/\1/p')
	weight=$(andante net status --json | sed -n '/"class": "\/server.slice"/,/"own_weight"/s/.*"weight": \([0-9]*\).*/\1/p')
	kind=$(qdisc 2>/dev/null)
	pinned=$(find /sys/fs/bpf/andante -type f 2>/dev/null | wc -l)
	echo "REPORT $1 $(state $out) ${kind:-none} ${rate:-none} ${weight:-none} $pinned"
}
in_is() { # KEY: the unit of packets in, the threads that work on them, and files about the device
	echo "REPORT $1 $(state $in) $(threads) $(find /run/andante/net -type f 2>/dev/null | wc -l)"
}

# Enabled for a device that is not there: nothing is tried.
systemctl enable $out $in
out_is enabled

appears
until_true state_is $out active
until_true have_threads
until_true state_is $in active
out_is appeared
in_is appeared_in
echo "REPORT segments $(segments)"

# Packets wait in it as it goes.
andante net reserve uplink /server.slice 1mbit/10ms
ip link del uplink
until_true ended $out
until_true ended $in
out_is gone
in_is gone_in
echo "REPORT failed $(systemctl list-units --failed --plain --no-legend 'andante*' | wc -l)"

appears
until_true state_is $out active
until_true have_threads
until_true state_is $in active
out_is again
in_is again_in

# Stopped: the kernel's own comes back; and what somebody has put there.
systemctl stop $out
out_is stopped
echo "REPORT segments_after $(segments)"
tc qdisc add dev uplink root pfifo limit 7
systemctl start $out
out_is started
systemctl restart $out
out_is restarted
systemctl stop $out
out_is stopped_again
systemctl stop $in
in_is stopped_in

# One that cannot be: a rate that is none. The other of the two goes on.
sed -i 's/10mbit/10mb/' /etc/andante.toml
systemctl start $out
echo "REPORT mistake $(state $out) $(systemctl show -P ExecMainStatus $out)"
echo "REPORT mistake_said $(journalctl -u $out -o cat -n 8 --no-pager | grep andante.toml)"
out_is mistaken
journalctl -u $out -u $in -o cat --no-pager | sed 's/^/JOURNAL /'
exit 0
