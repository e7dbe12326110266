#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A hundred connections in one class beside one in another of the same weight.
. /andante/common.sh
class many 100
class one 100
andante net attach out --rate 10mbit
ports=
for n in $(seq 101 200); do
	ports="$ports $n"
done
there packets sink tcp 5 30 $ports 300 &
sink=$!
sleep 1
in_class one packets stream 10.0.0.2 300 38 &
for n in $ports; do
	in_class many packets stream 10.0.0.2 "$n" 38 &
done
wait $sink
andante net status
