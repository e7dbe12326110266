# SPDX-License-Identifier: GPL-2.0
# Sound in ann's session (ann.sh), and what wants the CPU beside it.

# PipeWire with its default configuration, a sink without hardware, and a client that is asked for every quantum.
sounds() {
	as_ann 'systemctl --user start pipewire.service wireplumber.service'
	as_ann "pw-cli create-node adapter '{ factory.name=support.null-audio-sink node.name=speaker media.class=Audio/Sink
		object.linger=true audio.position=[ FL FR ] }'" >/dev/null
	as_ann 'test -e tone.wav' || as_ann "python3 -c '
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
}

# A build of C files, again and again, and eight loops.
builds_beside() {
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
}

quantum() { # SAMPLES: of PipeWire's, from now on
	as_ann "pw-metadata -n settings 0 clock.force-quantum $1" >/dev/null
	sleep 1
}

# Watches for so many SECONDS, and tells the quantum, and of the driver and the client how often PipeWire says that they
# came too late meanwhile (pw-top's ERR). Its terminal is one that knows of cursors, or it would not draw.
late() {
	as_ann "TERM=vt100 COLUMNS=120 LINES=24 timeout $1 script -qefc pw-top /dev/null" 2>/dev/null |
		sed -e 's/\x1b\[[0-9]*;[0-9]*H/\n/g' -e 's/\x1b\[[0-9]*C/ /g' -e 's/\x1b[[(][0-9;?]*[A-Za-z]//g' | tr '\r' '\n' |
		awk '$3 ~ /^[0-9]+$/ && $3 > 0 && /speaker|pw-cat/ { quantum[$NF] = $3; late[$NF] = $9 }
			END { print quantum["speaker"] + 0, late["speaker"] + 0, late["pw-cat"] + 0 }'
}
