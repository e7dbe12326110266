#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What a receiver gets, who works for 20 us on each packet, as more and more is offered.
. /andante/receive.sh
ms=500
work=$((speed * 20 / 1000))
all() { # NAME
	for kpps in 10 20 40 100 200; do
		flood out 10.0.0.1 $kpps $ms
		measured "$1_$kpps" $ms $work 0
	done
}
of() { # SCHEDULER
	all "$1_softirq"
	for order in equal last; do
		place $order
		all "$1_$order"
		echo "REPORT $1_${order}_early $(told)"
		displace
	done
}
of stock
in_charge
of andante
kill -INT $scheduler
wait $scheduler
