# SPDX-License-Identifier: GPL-2.0
# An ordinary user, who may use sudo.
export DEBIAN_FRONTEND=noninteractive
echo 'force-unsafe-io' >/etc/dpkg/dpkg.cfg.d/quick # the disk is memory
echo "127.0.1.1 $(hostname)" >>/etc/hosts
useradd --create-home --shell /bin/sh ann
echo 'ann ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ann

# In a session of her own, as if she had logged in: COMMAND, a line for the shell.
as_ann() {
	su --login --command "MINE=hers; export MINE; $1" ann </dev/null
}
try_as_ann() { # KEY COMMAND: reports what it answers, in one line, with its status
	said=$(as_ann "$2" 2>&1)
	echo "REPORT $1 $? $(echo "$said" | tr -s ' \n' ' ')"
}
# Her systemd and her bus are there from now on, and what they have started stays when she has logged out.
lingers() {
	loginctl enable-linger ann
	until_true test -S /run/user/1000/bus
}
# Every Debian with a desktop has rtkit. Here nobody answers for it.
without_rtkit() {
	dpkg --purge rtkit >/dev/null
}
