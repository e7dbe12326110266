#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What is refused, each for its reason, and without a trace.
. /andante/common.sh

reason() { # KEY WORDS COMMAND…: refused with these words
	key=$1
	words=$2
	shift 2
	status=0
	"$@" >/tmp/memory/said 2>&1 || status=$?
	cat /tmp/memory/said
	grep -q -- "$words" /tmp/memory/said || status=99
	report "$key" $status
}

truncate -s 8M disk
mkdir -p /etc
echo 'kim:x:1000:1000::/:/bin/sh' >/etc/passwd
chmod 666 disk
reason unprivileged 'use sudo' su kim -c '/andante/bin/andante disk attach /tmp/memory/disk'
reason not-there 'truncate -s 1G' andante disk attach nowhere
reason folder 'neither a file nor a block device' andante disk attach /tmp/memory
touch empty
reason empty 'is empty' andante disk attach empty
truncate -s 8388609 odd
reason odd-size 'no multiple of' andante disk attach odd
mkdir -p /tmp/ramfs /tmp/ext4
mount -t ramfs none /tmp/ramfs
truncate -s 8M /tmp/ramfs/disk
reason cached-only O_DIRECT andante disk attach /tmp/ramfs/disk
mkfs.ext4 -q /dev/ram1
mount -t ext4 /dev/ram1 /tmp/ext4
truncate -s 8M /tmp/ext4/disk
mount -o remount,ro /tmp/ext4
reason read-only 'may not be written' andante disk attach /tmp/ext4/disk
mount -o remount,rw /tmp/ext4
reason mounted 'umount /tmp/ext4' andante disk attach /dev/ram1
mkswap /dev/ram2 >/dev/null
swapon /dev/ram2
reason swap 'swapoff /dev/ram2' andante disk attach /dev/ram2
swapoff /dev/ram2
dd if=/dev/zero of=/tmp/ext4/swap bs=1M count=4 2>/dev/null
chmod 600 /tmp/ext4/swap
mkswap /tmp/ext4/swap >/dev/null
swapon /tmp/ext4/swap
reason swap-file 'swapoff /tmp/ext4/swap' andante disk attach /tmp/ext4/swap
swapoff /tmp/ext4/swap
umount /tmp/ext4
losetup /dev/loop0 disk
reason of-loop 'losetup -d' andante disk attach disk
losetup -d /dev/loop0
reason depth '1..=1023' andante disk attach disk --depth 0
reason not-attached 'andante disk list' andante disk detach disk
reason not-ours 'andante disk list' andante disk detach /dev/ram0
rmmod ublk_drv
reason no-module 'modprobe ublk_drv' andante disk attach disk
reason list-no-module 'modprobe ublk_drv' andante disk list
report handed-on "$(handed_on)"
report left "$(left)"
