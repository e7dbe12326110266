#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Each historical policy takes charge, schedules loops on all CPUs, is asked about, and leaves.
. /andante/common.sh
cpus=$(nproc)
idle() { awk '/^cpu / { print $5, $2 + $3 + $4 + $5 + $6 + $7 + $8 }' /proc/stat; } # and all [ticks]

loop() { # NICE: an endless loop; its process is $last
	nice -n "$1" endless &
	last=$!
	hogs="$hogs $last"
}

# Shares are judged on one CPU only; on several a second tells whether all are busy, and takes five of the host.
measured_s=$((cpus == 1 ? 4 : 1))
for policy in svr4-ts svr4-rt svr4-new linux-2.2 rr; do
	in_charge --policy $policy
	echo "REPORT ops $policy $(cat /sys/kernel/sched_ext/root/ops)"
	hogs=
	loop 0
	first=$last
	for _ in $(seq 2 $((cpus + 1))); do loop 19; done
	sleep 0.5
	before=$(idle)
	echo "REPORT nice_0 $policy $(parts $measured_s "$first")"
	echo "REPORT busy $policy $(echo "$before $(idle)" | awk '{ print 100 - ($3 - $1) * 100 / ($4 - $2) }')"
	if [ $policy = svr4-ts ]; then
		try status andante status
		try top andante top --once
		try reserve andante reserve $$ 1ms/10ms
		try class andante class create --weight 50 film
		try second andante run --policy rr
	fi
	# shellcheck disable=SC2086
	kill $hogs
	if [ $policy$cpus = svr4-ts1 ]; then
		hog 1
		set -- $(realtime 200)
		echo "REPORT waited_us $1"
		echo "REPORT longest_us $2"
		kill $last
	fi
	kill -INT $scheduler
	wait $scheduler
	echo "REPORT left_with $policy $?"
	echo "REPORT state $policy $(state)"
done

# First in, first out: what computes is not interrupted, so the loops have an end.
in_charge --policy fifo
finite() {
	i=0
	while [ $i -lt 20000 ]; do i=$((i + 1)); done
	echo "$1" >>/tmp/finished
}
for n in $(seq $((cpus * 3))); do finite "$n" & done
while [ "$(wc -l </tmp/finished)" -lt $((cpus * 3)) ]; do sleep 0.2; done
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with fifo $?"
echo "REPORT state fifo $(state)"
try unknown andante run --policy svr5
try not_theirs andante run --policy rr --leave 30
exit 0
