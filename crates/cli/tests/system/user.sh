# SPDX-License-Identifier: GPL-2.0
# What a user without privilege does, see main.rs.
. /andante/common.sh
export DEBIAN_FRONTEND=noninteractive
echo 'force-unsafe-io' >/etc/dpkg/dpkg.cfg.d/quick # the disk is memory

echo "127.0.1.1 $(hostname)" >>/etc/hosts
useradd --create-home --shell /bin/sh ann
echo 'ann ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ann
dpkg -i /andante/packages/andante.deb
unit installed

# In a session of her own, as if she had logged in: COMMAND, a line for the shell.
as_ann() {
	su --login --command "MINE=hers; export MINE; $1" ann </dev/null
}
try_as_ann() { # KEY COMMAND: reports what it answers, in one line, with its status
	said=$(as_ann "$2" 2>&1)
	echo "REPORT $1 $? $(echo "$said" | tr -s ' \n' ' ')"
}

who='id -un; echo $HOME $XDG_RUNTIME_DIR $MINE $SUDO_UID; sed s/.*:// /proc/self/cgroup'
try_as_ann sudo "sudo andante exec --class film --weight 300 -- sh -c '$who'"
try_as_ann sudo_as_root "sudo andante exec --as-root --class film -- id -un"
try_as_ann sudo_asked "sudo MINE=asked andante exec --class film -- sh -c 'echo \$MINE'"
try_as_ann sudo_reserve "sudo andante exec --reserve 1ms/20ms -- id -un"
try_as_ann own "andante exec --class film --weight 300 -- sh -c 'id -un; p=\$(sed s/.*:// /proc/self/cgroup); echo \$p; cat /sys/fs/cgroup\$p/cpu.weight'"
try_as_ann own_reserve "andante exec --reserve 1ms/20ms -- id -un"
try_as_ann own_both "andante exec --class film --weight 300 --reserve 1ms/20ms -- id -un"
try_as_ann own_failing "andante exec --class film -- sh -c 'exit 5'"
exit 0
