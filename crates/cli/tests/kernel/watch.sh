#!/bin/sh
# What status and top say of a live tree: two busy classes, weights 1 and 3; and why of a busy program
# and one that waits.
. /andante/common.sh
in_charge
andante class create light --weight 100
andante class create heavy --weight 300
andante exec --class light -- endless &
hogs=$!
andante exec --class heavy -- endless &
hogs="$hogs $!"
sh -c 'while :; do sleep 0.03; done' &
waits=$!
sleep 1
andante why --pid $waits >/tmp/why
echo "REPORT why_waits $(grep -c 'learnt contract on CPU 0' /tmp/why)"
starter=${hogs% *}
andante why --pid $(cat /proc/$starter/task/$starter/children) >>/tmp/why
echo "REPORT why_works $(grep -c 'has worked for .* since it woke last' /tmp/why)"
sed 's/^/WHY /' /tmp/why
andante top --once --interval 2 >/tmp/top
for class in light heavy; do
	echo "REPORT top_$class $(grep -c "$class" /tmp/top)"
	echo "REPORT status_$class $(andante status --json | grep -c "$class")"
done
sed 's/^/TOP /' /tmp/top
# The root, which comes first, is given all of a busy machine.
for _ in 1 2 3; do
	andante status --json --interval 0.2 | sed -n 's/.*"share_received": \([0-9.]*\).*/REPORT received \1/p' |
		head -n 1
done
kill $hogs $waits
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
