# SPDX-License-Identifier: GPL-2.0
# SECONDS [stock]: PipeWire with its default configuration, unmodified, beside a build and endless loops of the same
# user, for so long with each quantum; under Andante, or with the stock scheduler untouched. See main.rs.
. /andante/common.sh
. /andante/ann.sh
[ "$2" = stock ] || dpkg -i /andante/packages/andante.deb
unit installed

loginctl enable-linger ann
until_true test -S /run/user/1000/bus
as_ann 'systemctl --user start pipewire.service wireplumber.service'
as_ann "pw-cli create-node adapter '{ factory.name=support.null-audio-sink node.name=speaker media.class=Audio/Sink
	object.linger=true audio.position=[ FL FR ] }'" >/dev/null
# A tone, from a client that is asked for every quantum.
as_ann "python3 -c '
import math, struct
second = b\"\".join(struct.pack(\"<hh\", v, v) for v in (int(9000 * math.sin(n / 17.36)) for n in range(48000)))
data = 300 * len(second)
with open(\"tone.wav\", \"wb\") as tone:
    tone.write(struct.pack(\"<4sI4s4sIHHIIHH4sI\", b\"RIFF\", 36 + data, b\"WAVE\", b\"fmt \", 16, 1, 2, 48000, 192000, 4, 16,
        b\"data\", data))
    for _ in range(300):
        tone.write(second)
'"
as_ann 'systemd-run --user --quiet --unit=tone pw-cat --playback tone.wav'
sleep 2

# A build of C files, again and again, and loops.
cat >/home/ann/Makefile <<'M'
OBJECTS := $(foreach n,$(shell seq 64),part$n.o)
all: $(OBJECTS)
%.o: part.c
	cc -O1 -DPART=$* -c -o $@ part.c && echo $@ >>built
M
for n in $(seq 10); do
	echo "int f$n(int x) { int s = 0; for (int i = 0; i < x; i++) s += (i * $n) ^ (s >> 3); return s; }"
done >/home/ann/part.c
chown ann: /home/ann/Makefile /home/ann/part.c
as_ann 'systemd-run --user --quiet --unit=build sh -c "while make -s -j8; do rm -f *.o; done"'
for n in 1 2 3 4 5 6 7 8; do
	as_ann "systemd-run --user --quiet --unit=loop$n sh -c 'while :; do :; done'"
done

# Watches for so many SECONDS, and tells of the driver and the client how often PipeWire says that they came too late
# meanwhile (pw-top's ERR). Its terminal is one that knows of cursors, or it would not draw.
late() {
	as_ann "TERM=vt100 COLUMNS=120 LINES=24 timeout $1 script -qefc pw-top /dev/null" 2>/dev/null |
		sed -e 's/\x1b\[[0-9]*;[0-9]*H/\n/g' -e 's/\x1b\[[0-9]*C/ /g' -e 's/\x1b[[(][0-9;?]*[A-Za-z]//g' | tr '\r' '\n' |
		awk '$3 ~ /^[0-9]+$/ && $3 > 0 && /speaker|pw-cat/ { quantum[$NF] = $3; late[$NF] = $9 }
			END { print quantum["speaker"] + 0, late["speaker"] + 0, late["pw-cat"] + 0 }'
}
for quantum in 64 128 256; do
	as_ann "pw-metadata -n settings 0 clock.force-quantum $quantum" >/dev/null
	sleep 1
	echo "REPORT late_$quantum $(late "$1")"
done
for thread in $(ls /proc/$(pgrep -o -x pipewire)/task); do
	echo "THREAD $thread $(cat /proc/$thread/comm) $(chrt -p $thread 2>&1 | tr '\n' ' ')"
done
[ "$2" = stock ] || andante why --pid "$(pgrep -o -x pipewire)"
echo "REPORT built $(wc -l </home/ann/built)"
exit 0
