#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Records what every frame of an H.264 film costs to decode, for the key work_trace of scenarios:
#
#     papers/kato11/record-frames.sh [FILM] > papers/kato11/frames.csv
#
# Without FILM it encodes one of 64 s: eight scenes, calm and hectic in turn, as films have them.
# The film is decoded RUNS times on one thread; of each frame the least CPU time (user and system) is
# taken, since what else runs on the machine can only add to it. Needs ffmpeg with libx264.
set -eu
RUNS=${RUNS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

scene() { # SOURCE GRAIN: 8 s, 25 frames/s; the source must say nothing of size, rate and length
	printf '%s=size=640x360:rate=25,trim=duration=8,setpts=PTS-STARTPTS,noise=alls=%s:allf=t,format=yuv420p' "$1" "$2"
}

film=${1:-}
if [ -z "$film" ]; then
	film=$work/film.mkv
	n=0
	graph=
	inputs=
	for one in 'smptebars 0' 'testsrc2 12' 'mandelbrot 0' 'testsrc 0' 'testsrc2 30' 'smptebars 6' \
		'mandelbrot 18' 'testsrc2 0'; do
		# shellcheck disable=SC2086 # two words: source and grain
		graph="$graph$(scene $one)[s$n];"
		inputs="$inputs[s$n]"
		n=$((n + 1))
	done
	ffmpeg -nostdin -v error -filter_complex "$graph${inputs}concat=n=$n:v=1[film]" -map '[film]' \
		-c:v libx264 -preset medium -crf 23 -bf 3 -g 100 -threads 1 "$film"
fi

run=0
while [ "$run" -lt "$RUNS" ]; do
	# ffmpeg asks the decoder twice for each packet: with it, and whether there is more.
	ffmpeg -nostdin -hide_banner -benchmark_all -threads 1 -i "$film" -an -f null - 2>&1 |
		tr '\r' '\n' | grep -o 'bench: *[0-9]* user *[0-9]* sys *[0-9]* real decode_video' |
		awk '{ sum += $2 + $4; if (NR % 2 == 0) { print sum; sum = 0 } }' > "$work/run-$run"
	run=$((run + 1))
done

echo "# CPU time of decoding each frame of an H.264 film [ms], in decoding order"
echo "# $(ffmpeg -version | head -1 | cut -d' ' -f1-3), one thread, least of $RUNS runs; $(uname -m)"
if [ -z "${1:-}" ]; then
	echo "# the film: 64 s at 640x360, 25 frames/s, libx264 medium crf 23, as record-frames.sh makes it"
else
	echo "# the film: $(basename "$1")"
fi
paste "$work"/run-* | awk '{
	least = $1
	for (i = 2; i <= NF; i++) if ($i < least) least = $i
	printf "%.3f\n", least / 1000
}'
