#!/bin/sh
# A user of a kernel with PREEMPT_RT is refused; and the kernel refuses too, where nothing says that it is one.
. /andante/common.sh
try run andante run
try historical andante run --policy rr
try doctor andante doctor

hide() { # FILE TEXT
	echo "$2" >/tmp/hidden$hidden
	mount --bind /tmp/hidden$hidden "$1" || exit 1
	hidden=x$hidden
}
[ -e /sys/kernel/realtime ] && hide /sys/kernel/realtime 0
hide /proc/sys/kernel/version '#1 SMP PREEMPT_DYNAMIC'
for config in /boot/config-*; do hide "$config" ''; done
andante run >/tmp/said 2>&1
echo "REPORT status_of_kernel $?"
grep -q 'bpf_timer cannot be used for PREEMPT_RT' /tmp/said && echo "REPORT tried refused"
echo "REPORT words_of_kernel $(tail -n 3 /tmp/said | tr -s ' \n' ' ')"
exit 0
