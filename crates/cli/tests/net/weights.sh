#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Two senders whose classes weigh the same on the CPU, by the weights that they have on the device alone.
. /andante/common.sh
class a 100
class b 100
class in/x 100
class gone 100
mkdir $cgroups/in/x/none
try not_attached andante net weight out /a 300
try nowhere andante net weight --all /a 300
printf '[net.out]\nrate = "10mbit"\n[net.out.weights]\n"/a" = 300\n"/later" = 5\n' >/andante/some.toml
andante net attach out --config /andante/some.toml 2>/andante/said
cat /andante/said
echo "REPORT later $(grep -c '/later is to have the weight 5' /andante/said)"
shares() { # FIRST_PORT
	there packets sink udp 2 5 "$1" $(($1 + 1)) &
	sink=$!
	in_class a packets send 10.0.0.2 "$1" 1400 400 8 &
	in_class b packets send 10.0.0.2 $(($1 + 1)) 1400 400 8 &
	wait $sink
	sleep 1.5
}
shares 1001
# Turned while packets are sent, as `net status` says.
andante net weight --all /a 50
andante net status | grep '^/a  *50\*'
shares 1003
# A class inside of another: of the one above.
try unknown andante net weight out /nobody 300
try too_much andante net weight out /a 10001
try of_root andante net weight out / 300
try no_class andante net weight out /in/x/none 300
try two_words andante net weight /a 300
andante net weight out a default
shares 1005
andante net status | grep '^/a  *100 '
# With a class its weight goes.
andante net weight out /gone 7
own() { # how many classes have a weight here
	andante net status --json | grep -c '"own_weight": true' || true
}
echo "REPORT own $(own)"
rmdir $cgroups/gone
andante net weight out /in 200
andante net status
echo "REPORT own_after $(own)"
