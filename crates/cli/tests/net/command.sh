#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What is refused, what is changed by attaching, and what comes back by detaching.
. /andante/common.sh

before=$(segments)

try no_such_device andante net attach nowhere --rate 10mbit
try no_rate andante net attach out
try rate_of_zero andante net attach out --rate 0mbit
try not_attached andante net detach out
mkdir -p /etc
echo 'kim:x:1000:1000::/:/bin/sh' >/etc/passwd
try unprivileged su kim -c '/andante/bin/andante net status'
umount /sys/fs/bpf
try nowhere_to_keep andante net attach out --rate 10mbit
mount -t bpf bpf /sys/fs/bpf
printf '[net.out]\nrate = "10mb"\n' >/andante/wrong.toml
try wrong_config andante net attach out --config /andante/wrong.toml
same qdisc noqueue "$(qdisc)"
same "what is kept" "" "$(ls /sys/fs/bpf)"

# The kernel's own is replaced, and comes back. The unit's capabilities suffice for that.
may=$(sed -n 's/^CapabilityBoundingSet=//p' /andante/unit | tr 'A-Z ' 'a-z,' | sed 's/cap_/+/g')
as_unit() {
	/andante/bin/setpriv --bounding-set "-all,$may" "$@"
}
as_unit andante net attach out --rate 10mbit
same qdisc andante "$(qdisc)"
same segments 3348 "$(segments)"
# Anew, as a file says.
printf '[net.out]\nrate = "100mbit"\n' >/etc/andante.toml
andante net attach out
same qdisc andante "$(qdisc)"
same segments 12820 "$(segments)"
andante net status | grep '100mbit at most'
as_unit andante net detach --all
same qdisc noqueue "$(qdisc)"
same segments "$before" "$(segments)"
same "what is kept" "" "$(ls /sys/fs/bpf)"

# Somebody's is not, unless that is said; then it comes back.
tc qdisc add dev out root pfifo limit 7
try taken andante net attach out
same qdisc pfifo "$(qdisc)"
andante net attach out --replace
same qdisc andante "$(qdisc)"
andante net detach out
same qdisc pfifo "$(qdisc)"

# Somebody takes Andante off by other means.
andante net attach out --replace
tc qdisc replace dev out root pfifo limit 9
andante net status | grep 'by other means'
andante net detach out
same qdisc pfifo "$(qdisc)"
same segments "$before" "$(segments)"
same "what is kept" "" "$(ls /sys/fs/bpf)"
echo "REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount|unregister_netdevice')"
