# SPDX-License-Identifier: GPL-2.0
# Requests of programs over D-Bus, answered by the installed andante-bus for an ordinary user, see main.rs.
. /andante/common.sh
. /andante/ann.sh
. /andante/sounds.sh
rtkit=org.freedesktop.RealtimeKit1
program=/usr/libexec/andante/andante-bus

at install
dpkg -i /andante/packages/andante.deb
unit installed

# rtkit has the name, and keeps it.
systemctl start rtkit-daemon
dpkg-deb -x /andante/packages/andante-bus.deb /tmp/unpacked
timeout 2 /tmp/unpacked$program --system 2>&1 | sed 's/^/REPORT beside_rtkit /'
echo "REPORT rtkit_goes_on $(systemctl is-active rtkit-daemon)"

# The package takes its place.
at bus
dpkg -i /andante/packages/andante-bus.deb 2>&1 | sed 's/^/DPKG /'
echo "REPORT rtkit_after $(dpkg-query -W -f '${db:Status-Status}' rtkit) $(pgrep -c rtkit-daemon)"
echo "REPORT bus_installed $(systemctl is-active andante-bus) $(systemctl is-enabled andante-bus)"

# METHOD ARGUMENTS…: as ann asks; the answer without its numbers, or the refusal.
ask() {
	as_ann "dbus-send --system --print-reply --dest=$rtkit /org/freedesktop/RealtimeKit1 $rtkit.$1" 2>&1 |
		sed 's/^\(method return\).*/\1/'
}
realtime() { # PROCESS THREAD
	ask "MakeThreadRealtimeWithPID uint64:$1 uint64:$2 uint32:10"
}
said_of() { # PROCESS: what is asked for it, as ann sees it
	as_ann 'andante status --interval 0.05' | sed -n 's/^In session: //p' | tr ';' '\n' | grep "($1)"
}
asked() { # KEY PROCESS: reports that
	said_of "$2" | sed "s/($2)/(PID)/; s/^ *//; s/\\.$//; s/^/REPORT $1 /" | grep . || echo "REPORT $1 nothing"
}
nothing_said_of() {
	! said_of "$1" >/dev/null
}
until_said_of() {
	until_true said_of "$1" >/dev/null
}
until_nothing_said_of() {
	until_true nothing_said_of "$1"
}

# Started by its name, by whoever asks first.
at activation
lingers
systemctl stop andante-bus
as_ann 'systemd-run --user --quiet --unit=sleeper sleep 1000'
sleeper=$(pgrep -x sleep)
echo "REPORT asked $(realtime "$sleeper" "$sleeper"), $(systemctl is-active andante-bus)"
asked asked_seen "$sleeper"
echo "REPORT asked_json $(as_ann 'andante status --json --interval 0.05' | grep -c '"asked_by": *"andante-bus"')"
echo "REPORT asked_policy $(chrt -p "$sleeper" | sed -n 's/.*policy: //p')"
echo "REPORT others $(realtime 1 1)"
echo "REPORT not_its_thread $(realtime "$sleeper" 1)"
# The scheduler is loaded anew, and nobody asks again.
systemctl stop andante
echo "REPORT stopped $(realtime "$sleeper" "$sleeper")"
systemctl start andante
until_said_of "$sleeper"
asked said_again "$sleeper"
as_ann 'systemctl --user stop sleeper'
until_nothing_said_of "$sleeper"
asked ended "$sleeper"

# A game that knows of nothing.
at game
echo "REPORT gamemode $(as_ann "busctl --user status com.feralinteractive.GameMode" | sed -n 's/^Comm=//p')"
as_ann 'systemd-run --user --quiet --unit=game /usr/games/gamemoderun sleep 1000'
until_true pgrep -x sleep >/dev/null
game=$(pgrep -x sleep)
until_said_of "$game"
asked game_seen "$game"
as_ann 'systemctl --user stop game'
until_nothing_said_of "$game"
asked game_ended "$game"

# PipeWire, as it is installed.
at sound
sounds
pipewire=$(pgrep -o -x pipewire)
# It asks for a nice value first.
plays() {
	said_of "$pipewire" | grep -q audio
}
until_true plays
asked sound_seen "$pipewire"
builds_beside
quantum 64
echo "REPORT late $(late 2)"
for thread in $(ls "/proc/$pipewire/task"); do
	echo "REPORT policies $(chrt -p "$thread" | sed -n 's/.*policy: //p')"
done
as_ann 'andante reserve --list' >/tmp/listed
sed 's/^/SAID /' /tmp/listed
echo "REPORT listed $(grep -c '^learnt.*pipewire\|^learnt.*data-loop' /tmp/listed)"

at removal
as_ann 'systemctl --user stop build tone loop1 loop2 loop3 loop4 loop5 loop6 loop7 loop8'
dpkg --purge andante-bus 2>&1 | sed 's/^/DPKG /'
until_nothing_said_of "$pipewire"
asked removed "$pipewire"
echo "REPORT removed_answers $(ask 'MakeThreadRealtime uint64:0 uint32:10')"
echo "REPORT removed_left $(find /usr /lib/systemd /etc /var/lib/systemd /run -name '*andante-bus*' \
	-o -name '*RealtimeKit1*' | wc -l) $(pgrep -c andante-bus)"
find /usr /lib/systemd /etc /var/lib/systemd /run -name '*andante-bus*' -o -name '*RealtimeKit1*' | sed 's/^/LEFT /'
unit others_go_on
exit 0
