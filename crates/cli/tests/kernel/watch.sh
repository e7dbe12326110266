#!/bin/sh
# What status and top say of a live tree: two busy classes, weights 1 and 3; and why of a busy program,
# of one that waits for another, and of that one, which waits for children of its own only.
andante class create light --weight 100
andante class create heavy --weight 300
andante exec --class light -- endless &
hogs=$!
andante exec --class heavy -- endless &
hogs="$hogs $!"
mkfifo /tmp/ticks
sh -c 'while :; do echo; sleep 0.03; done' >/tmp/ticks &
forks=$!
sh -c 'while read -r _; do :; done' </tmp/ticks &
waits=$!
sleep 1
starter=${hogs% *}
andante why --pid $waits >/tmp/why.waits
andante why --pid $forks >/tmp/why.forks
andante why --pid $(cat /proc/$starter/task/$starter/children) >/tmp/why.works
echo "REPORT why_waits $(grep -c 'learnt contract on CPU 0' /tmp/why.waits)"
echo "REPORT why_forks $(grep -c 'nobody seems to wait for it' /tmp/why.forks)"
echo "REPORT why_works $(grep -c 'has worked for .* since it woke last' /tmp/why.works)"
sed 's/^/WHY /' /tmp/why.waits /tmp/why.forks /tmp/why.works
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
kill $hogs $forks $waits
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
