#!/bin/sh
# What status and top say of a live tree: two busy classes, weights 1 and 3.
. /andante/common.sh
in_charge
andante class create light --weight 100
andante class create heavy --weight 300
andante exec --class light -- sh -c 'while :; do :; done' &
hogs=$!
andante exec --class heavy -- sh -c 'while :; do :; done' &
hogs="$hogs $!"
sleep 1
andante top --once --interval 2 >/tmp/top
for class in light heavy; do
	echo "REPORT top_$class $(grep -c "$class" /tmp/top)"
	echo "REPORT status_$class $(andante status --json | grep -c "$class")"
done
sed 's/^/TOP /' /tmp/top
kill $hogs
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
