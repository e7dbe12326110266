#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Two connections as one to three, then, when somebody has turned a weight, as one to one.
. /andante/common.sh
class light 100
class heavy 300
andante net attach out --rate 10mbit
streams() { # FIRST_PORT
	there packets sink tcp 3 10 "$1" $(($1 + 1)) &
	sink=$!
	sleep 0.2
	in_class light packets stream 10.0.0.2 "$1" 14 &
	in_class heavy packets stream 10.0.0.2 $(($1 + 1)) 14 &
	wait $sink
	sleep 2
}
streams 2001
echo 100 >$cgroups/heavy/cpu.weight
streams 2003
tc -s qdisc show dev out
