# SPDX-License-Identifier: GPL-2.0
# A desktop of an ordinary user: her systemd, bus, sound server and display, a real player; and what she sees of
# it without root, see main.rs.
. /andante/common.sh
. /andante/ann.sh
at install
without_rtkit
dpkg -i /andante/packages/andante.deb
unit installed

at desktop
lingers
as_ann 'systemctl --user start pipewire.service wireplumber.service'
try_as_ann sound 'systemctl --user is-active pipewire.service'
as_ann "pw-cli create-node adapter '{ factory.name=support.null-audio-sink node.name=speaker media.class=Audio/Sink
	object.linger=true audio.position=[ FL FR ] }'"
at display
as_ann 'systemd-run --user --quiet --unit=display Xvfb :1 -screen 0 640x480x24'
until_true test -S /tmp/.X11-unix/X1
at player
as_ann "DISPLAY=:1 systemd-run --user --quiet --unit=film --setenv=DISPLAY=:1 andante exec --reserve 2ms/33ms \
	-- mpv --no-config --vo=x11 --ao=pipewire --really-quiet 'av://lavfi:testsrc=size=320x240:rate=30[out0];sine[out1]'"
for _ in 1 2; do
	systemd-run --quiet sh -c 'while :; do :; done'
done
sleep 8
mpv=$(pgrep -o mpv)
echo "REPORT player $([ -n "$mpv" ] && echo runs)"

at looks
# KEY COMMAND: what she is told goes to /tmp/said_KEY, and to the console.
tell() {
	as_ann "andante $2" >"/tmp/said_$1" 2>&1
	echo "REPORT status_$1 $?"
	sed 's/^/SAID /' "/tmp/said_$1" | head -50
}
tell status status
tell json 'status --json'
tell top 'top --once'
tell list 'reserve --list'
tell why "why --pid $mpv"
tell other 'why --pid 1'
tell metrics metrics
has() { # KEY FILE PATTERN
	echo "REPORT $1 $(grep -c "$3" "/tmp/said_$2")"
}
has learnt_seen status '^learnt'
has learnt_json json '"awaited"'
has counters json '"picks"'
has own_row status 'its own tasks'
has learnt_listed list '^learnt'
has quota list 'You hold'
has why_contract why 'contract'
has others_not_seen other "another user's"
has metrics metrics '^andante_in_charge 1'
exit 0
