#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A film with a contract, in the class of the least weight, beside five senders of the largest datagrams.
. /andante/common.sh
class film 1
for n in 1 2 3 4 5; do
	class bulk$n 1000
done
andante net attach out --rate 10mbit
# Nine of ten are more than there is: a fifth is left to others.
try too_much andante net reserve out /film 9mbit/10ms
try unknown andante net reserve out /nobody 1mbit/10ms
try no_period andante net reserve out /film 1mbit
try promised andante net reserve out /film 900kbit/10ms
there packets sink udp 2 10 1001 1002 1003 1004 1005 1006 &
sink=$!
for n in 1 2 3 4 5; do
	in_class bulk$n packets send 10.0.0.2 100$n 1472 1000 13 &
done
in_class film packets send 10.0.0.2 1006 1000 10000 13 &
wait $sink
andante net status
try released andante net release out /film
try no_more andante net release out /film
