# SPDX-License-Identifier: GPL-2.0
# The life of the service, see main.rs.
. /andante/common.sh
export DEBIAN_FRONTEND=noninteractive
echo 'force-unsafe-io' >/etc/dpkg/dpkg.cfg.d/quick # the disk is memory
package=/andante/packages/andante.deb

dpkg -i $package
unit installed
echo "REPORT group $(getent group andante | cut -d: -f1)"

systemctl stop andante
unit stopped
systemctl start andante
unit started

# Reserved memory is the kernel's as before when the process is gone.
mkdir -p /sys/fs/cgroup/film
andante reserve /film --memory 20M
echo "REPORT reserved_min $(cat /sys/fs/cgroup/film/memory.min)"

# The kernel's scheduler is back when the process is gone, long before systemd starts it again.
restarts=$(systemctl show -P NRestarts andante)
kill -KILL "$(systemctl show -P MainPID andante)"
until_true is activating
echo "REPORT killed $(charge)"
until_true is active
unit after_kill
# No file with what is to be put back is left; if there is one, the test tells what is in it.
echo "REPORT killed_min $(cat /sys/fs/cgroup/film/memory.min) $(cat /run/andante/memory.json 2>/dev/null)"
echo "REPORT restarts_after_kill $(($(systemctl show -P NRestarts andante) - restarts))"

# A mistake in the configuration.
systemctl reset-failed andante
printf '# mine\nlearn_percnt = 5\n' >/etc/andante.toml
systemctl restart andante
sleep 3
echo "REPORT bad_config $(systemctl show -P ActiveState andante) $(charge) $(systemctl show -P ExecMainStatus andante)"
echo "REPORT bad_config_restarts $(systemctl show -P NRestarts andante)"
echo "REPORT bad_config_said $(journalctl -u andante -p err -o cat -n 5 --no-pager | tr '\n' ' ')"
rm /etc/andante.toml
systemctl start andante
unit mended

# Whoever is at the machine ejects it (SysRq S): it comes back until that has happened three times.
systemctl reset-failed andante
systemctl restart andante
eject() {
	echo S >/proc/sysrq-trigger
	until_true in_charge_is disabled
	until_true is activating || true # while it waits, and while it loads
	until_true settled
}
for _ in 1 2 3; do
	eject
	unit ejected
done
unit ejections_given_up
echo "REPORT ejection_said $(journalctl -u andante -o cat -n 12 --no-pager | tr '\n' ' ')"

# Newer packages while it is in charge: the same but for its version.
newer() { # SUFFIX
	sed -i "s/^Version: .*/&$1/" /tmp/newer/DEBIAN/control
	dpkg-deb -Znone -b /tmp/newer /tmp/newer.deb >/dev/null
	dpkg -i /tmp/newer.deb
}
dpkg-deb -R $package /tmp/newer
systemctl reset-failed andante
systemctl start andante
before=$(systemctl show -P MainPID andante)
newer +1
unit upgraded
now=$(systemctl show -P MainPID andante)
echo "REPORT upgraded_runs $([ "$now" -ne "$before" ] && echo anew) $(readlink "/proc/$now/exe")"
# One that does not know a key any more.
printf 'slice_us = 3000\nturn_ms = 5\n' >/etc/andante.toml
newer +2
unit old_config
echo "REPORT old_config_restarts $(systemctl show -P NRestarts andante)"
echo "REPORT old_config_package $(dpkg-query -W -f '${db:Status-Status}' andante)"
echo "REPORT old_config_said $(journalctl -u andante -o cat -n 8 --no-pager | grep andante.toml)"
rm /etc/andante.toml
systemctl start andante
unit old_config_mended

dpkg -r andante
echo "REPORT removed $(charge)"
echo "REPORT removed_left $(find /usr/bin /lib/systemd /usr/share -name '*andante*' | wc -l)"
dpkg --purge andante
echo "REPORT purged_left $(find /etc/systemd /var/lib/systemd -name '*andante.service*' | wc -l)"
exit 0
