#!/bin/sh
# More threads that wake and work a little than there is room for learnt contracts; then root reserves.
batches=
for _ in $(seq 12); do
	threads 100 1 2000 >/dev/null &
	batches="$batches $!"
	sleep 2.2
done
sleep 6
learnt() { andante status --interval 0.1 --json | sed -n '/"learnt_room": {/,/}/s/.*"'"$1"'": \([0-9]*\).*/\1/p'; }
echo "REPORT held $(learnt held)"
echo "REPORT refused $(learnt refused)"
try status andante status --interval 0.1
try doctor andante doctor
endless &
one=$!
endless &
other=$!
try dry_run andante reserve $one 4ms/10ms --dry-run
try reserve andante reserve $one 4ms/10ms
echo "REPORT reserved $(parts 2 $one)"
kill $batches $one $other
sleep 2.5
echo "REPORT left_held $(learnt held)"
echo "REPORT state $(state)"
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
exit 0
