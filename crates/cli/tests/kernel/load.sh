#!/bin/sh
# How long the scheduler took to be in charge, on an otherwise idle machine [virtual s].
echo "REPORT load_s $(awk "BEGIN { print $ended - $began }")"
andante status --json | awk -F '"' '
	/"name": "andante_/ { name = $4 }
	/verified_instructions/ { sub(/[^0-9]*/, "", $3); print "REPORT verified " name, $3 + 0 }'
kill -INT $scheduler
wait $scheduler
