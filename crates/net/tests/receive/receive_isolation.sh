#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A flood at a socket that is read slowly, beside a film and a loop of other classes.
. /andante/receive.sh
ms=2000
kpps=100
slowly="0 1000"
run() { # NAME
	others "$1" $ms
	measured "$1" $ms $slowly
}
all() { # NAME
	no_flood
	run "$1_none"
	flood gone 10.0.1.1 $kpps $ms
	run "$1_base"
	flood out 10.0.0.1 $kpps $ms
	run "$1_softirq"
	place equal
	for weight in 10 100; do
		echo $weight >$cgroups/flood/cpu.weight
		flood out 10.0.0.1 $kpps $ms
		run "$1_placed_$weight"
		echo "REPORT $1_early_$weight $(told)"
	done
	displace
}
all stock
in_charge
all andante
kill -INT $scheduler
wait $scheduler
