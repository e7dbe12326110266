#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A disk as a user has it: attached, used, its command killed, and detached.
. /andante/common.sh

# The least that is freed late is not ours.
warned() {
	dmesg | sed '/UBSAN: array-index-out-of-bounds in .*io_uring\/rsrc.c/,/end trace/d' |
		grep -cE 'WARNING|BUG|UBSAN|Call Trace' || true
}
mounted_on() { # DEVICE
	mkdir -p /tmp/on
	mount -t ext4 "$1" /tmp/on
}

truncate -s 64M disk
ln disk other-name
attach one.log disk --depth 4
andante disk list
andante disk list --json >listed
report listed "$(grep -c '"/tmp/memory/disk"' listed)"
try again andante disk attach disk
try same-file andante disk attach other-name
mkfs.ext4 -q /dev/ublkb0
mounted_on /dev/ublkb0
try detach-mounted andante disk detach /dev/ublkb0
umount /tmp/on
sleep 60 </dev/ublkb0 &
holder=$!
try detach-open andante disk detach disk
kill $holder
wait $holder || true

# Asked to end while it is mounted: it stays until it is not.
mounted_on /dev/ublkb0
echo film >/tmp/on/file
kill -TERM $server
until_true grep -q 'umount /tmp/on' one.log
sleep 2
report stays-mounted "$(cat /tmp/on/file | grep -c film)"
umount /tmp/on
status=0
wait $server || status=$?
report ended-by-itself $status
cat one.log

# Swap is taken off.
truncate -s 16M forswap
attach swap.log forswap
mkswap /dev/ublkb0 >/dev/null
swapon /dev/ublkb0 || true
until_true grep -q 'was made swap' swap.log
report swap-left "$(tail -n +2 /proc/swaps | wc -l)"
andante disk detach forswap
wait $server

# Killed while it is written to.
attach two.log disk
mounted_on /dev/ublkb0
(for file in 1 2 3 4 5 6 7 8; do dd if=/dev/zero bs=64k count=16 conv=fsync of=/tmp/on/$file 2>/dev/null; done) &
writer=$!
sleep 0.02
kill -9 $server
wait $server || true
sleep 0.1
andante disk list
report waits "$(andante disk list | grep -c 'cello.* -  /tmp/memory/disk')"
try detach-killed andante disk detach /dev/ublkb0
attach three.log disk
report goes-on "$(count 'goes on where' three.log)"
status=0
wait $writer || status=$?
report written $status
umount /tmp/on
try checked fsck.ext4 -fn /dev/ublkb0
try detached andante disk detach disk
wait $server

# Killed while nobody has it: nothing of it is lost by taking it off.
attach four.log disk
kill -9 $server
wait $server || true
try idle-killed andante disk detach /dev/ublkb0

# Below there is no more room.
mkdir small
mount -t tmpfs -o size=4M none small
truncate -s 32M small/disk
attach full.log small/disk
dd if=/dev/zero of=/dev/ublkb0 bs=1M count=16 conv=fsync 2>full && report no-space 0 || report no-space 1
cat full
until_true grep -q 'No space' full.log
report told "$(count 'No space' full.log)"
# And killed: what cannot be written any more is given up.
sleep 60 <>/dev/ublkb0 &
holder=$!
kill -9 $server
wait $server || true
try forced andante disk detach --force /dev/ublkb0
kill $holder
wait $holder || true
# Who has handed on the io controller was killed: the next one puts it back.
attach last.log disk
andante disk detach disk
wait $server
report devices-left "$(ls /sys/class/ublk-char | wc -l)"
report handed-on "$(handed_on)"
report left "$(left)"
dmesg | tail -30
report warnings "$(warned)"
