#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Sessions of applications: what an ordinary user is told, from a container, many at a time, killed, and full of nonsense.
open='{"op":"open","version":1,"role":"game","cycle":{"period_ns":16666667}}'
join='{"op":"join","thread":TID}'
promise='{"op":"promise","terms":{"budget_ns":9000000,"period_ns":16666667}}'
more='{"op":"promise","terms":{"budget_ns":16000000,"period_ns":16666667}}'
sessions() {
	andante reserve --list --json | grep -c '"session"'
}
before=$(files)
try user session ask 1000 "$open" "$join" "$promise" "$more"
try strange session ask 1000 "$open" '{"op":"join","thread":1}' '{"op":"join","thread":99999}' '{"op":"open","version":9,"role":"game","cycle":{}}'
try contained session contained
echo "REPORT many $(session many 2000)"
echo "REPORT kills $(session kills $kills)"
hog 2
echo "REPORT nonsense $(session nonsense 3)"
sleep 2
echo "REPORT contracts $(contracts)"
echo "REPORT files_more $(($(files) - before))"
echo "REPORT state $(state)"

# The daemon is killed under a client, and the next one is there.
kill $hogs
session outlives 60 >/tmp/outlived 2>/dev/null &
client=$!
until grep -q promised /tmp/outlived; do sleep 0.05; done
kill -9 $scheduler
wait $scheduler 2>/dev/null
until [ "$(state)" = disabled ]; do sleep 0.05; done
in_charge
wait $client
echo "REPORT outlived $(tail -n 1 /tmp/outlived)"
