# SPDX-License-Identifier: GPL-2.0
# The unit that places packets that come, with all that it is confined to.
. /andante/common.sh
dpkg -i /andante/packages/andante.deb >/dev/null
printf '[Slice]\nCPUWeight=50\n' >/etc/systemd/system/server.slice
printf '[net.uplink]\nreceive = "/server.slice"\nreceive_last = true\n' >/etc/andante.toml
systemctl daemon-reload
class=/sys/fs/cgroup/server.slice
/andante/bin/ip link add uplink type veth peer name far
/andante/bin/ip link set far up
service='andante-receive@uplink'

threads() { # of the device's that are in the class
	for pid in $(cat $class/cgroup.procs 2>/dev/null); do
		grep '^napi/' "/proc/$pid/comm"
	done | wc -l
}
have_threads() {
	[ "$(threads)" -ge 1 ]
}
now() { # KEY: the service, the device, and what is in the class
	echo "REPORT $1 $(systemctl show -P ActiveState $service) $(cat /sys/class/net/uplink/threaded) $(threads)"
}
service_is() {
	[ "$(systemctl show -P ActiveState $service)" = "$1" ]
}
restarted() { # by systemd, so often
	[ "$(systemctl show -P NRestarts $service)" = "$1" ] && service_is active
}

# It starts while there is no such class, and the device is down.
systemctl start $service
echo "REPORT no_class $? $(systemctl show -P ExecMainStatus $service)"
systemctl start server.slice
until_true service_is active
now down
/andante/bin/ip link set uplink up
until_true have_threads
now placed

restarts=$(systemctl show -P NRestarts $service)
kill -KILL "$(systemctl show -P MainPID $service)"
until_true service_is activating
now killed
until_true restarted $((restarts + 1))
now after_kill

systemctl stop $service
now stopped
echo "REPORT files $(ls /run/andante/net | wc -l)"

# A mistake in the configuration is told, and not tried again.
sed -i 's/_last/_lst/' /etc/andante.toml
systemctl start $service
sleep 3
echo "REPORT mistake $(systemctl show -P ActiveState $service) $(systemctl show -P ExecMainStatus $service)"
echo "REPORT mistake_said $(journalctl -u $service -o cat -n 8 --no-pager | grep andante.toml)"
exit 0
