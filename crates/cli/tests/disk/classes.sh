#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What classes have of a disk: promised, refused with an offer, kept though the server is killed, and given back.
. /andante/common.sh

mkdir $cgroups/film $cgroups/copy
truncate -s 64M disk
attach one.log disk --arm true --rate 100M
cat one.log
try no-class andante disk reserve disk /nobody 64K/33.3ms
try nonsense andante disk reserve disk /film 64K
try promised andante disk reserve disk /film 64K/100ms
try too-much andante disk reserve /dev/ublkb0 /copy 8M/100ms >offer
cat offer
report offered "$(count 'would be admitted' offer)"
# The offer that is made is admitted.
terms=$(sed -n 's,^  \([0-9].*\) would be admitted.*,\1,p' offer | tail -n 1)
try as-offered andante disk reserve disk /copy "$terms"
try back andante disk release disk /copy
try weighed andante disk weigh disk /copy 300
try no-weight andante disk weigh disk /copy 0

# Whose requests they are.
in_class() { # CLASS COMMAND…
	(echo 0 >"$cgroups/$1/cgroup.procs" && shift && exec "$@")
}
in_class film dd if=/dev/ublkb0 of=/dev/null bs=64k count=4 iflag=direct 2>/dev/null
in_class copy dd if=/dev/ublkb0 of=/dev/null bs=512k count=8 iflag=direct 2>/dev/null

kill -9 $server
wait $server || true
attach two.log disk --arm true --rate 100M
report goes-on "$(count 'goes on where' two.log)"
try still-promised andante disk reserve disk /copy 64K/33.3ms
try released andante disk release disk /film
try released-again andante disk release disk /film
try now-it-fits andante disk reserve disk /copy 64K/33.3ms
rmdir $cgroups/copy
try gone-is-forgotten andante disk reserve disk /film 64K/33.3ms
try detached andante disk detach disk
wait $server

attach three.log disk --order fifo
try unordered andante disk reserve disk /film 64K/33.3ms
andante disk detach disk
wait $server
report left "$(left)"
