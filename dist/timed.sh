#!/bin/sh
# Runs one part of a longer `make`, says what it took, and keeps that for the summary.
#
#   dist/timed.sh FOLDER NAME COMMAND…     COMMAND, and a line in FOLDER/NAME
#   dist/timed.sh FOLDER                   the summary of all that is in FOLDER
#
# Seconds as they passed, and of CPU time: what a part costs on a machine on which others work too.
set -u
folder=$1
if [ $# -eq 1 ]; then
	echo "part                     seconds  of a CPU  status"
	cat "$folder"/* | sort -k4,4n -k3,3rn | awk '
		{ printf "%-24s %7d  %8d  %s\n", $1, $2, $3, $4 == 0 ? "passed" : "FAILED" }
		{ cpu += $3; if (!begin || $5 < begin) begin = $5; if ($5 + $2 > end) end = $5 + $2 }
		END { printf "%-24s %7d  %8d\n", "all of it", end - begin, cpu }'
	exit 0
fi
name=$2
shift 2
mkdir -p "$folder"
begin=$(date +%s)
echo "$name: begins"
"$@"
status=$?
# The second line of `times` is what the children took: 1m2.34s 0m5.6s. A subshell would tell of its own.
times >"$folder/.$name"
cpu=$(awk 'NR == 2 { split($1 "m" $2, t, /[ms]+/); printf "%.0f", t[1] * 60 + t[2] + t[3] * 60 + t[4] }' "$folder/.$name")
rm "$folder/.$name"
took=$(($(date +%s) - begin))
echo "$name $took $cpu $status $begin" >"$folder/$name"
word=passed
[ "$status" -eq 0 ] || word=FAILED
echo "$name: $word after $took s, $cpu s of a CPU"
exit "$status"
