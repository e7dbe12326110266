# SPDX-License-Identifier: GPL-2.0
# SECONDS [stock]: PipeWire with its default configuration, unmodified, beside a build and endless loops of the same
# user, for so long with each quantum; under Andante, or with the stock scheduler untouched. Nobody answers what it asks
# for over D-Bus: bus.sh has that. See main.rs.
. /andante/common.sh
. /andante/ann.sh
. /andante/sounds.sh
without_rtkit
[ "$2" = stock ] || dpkg -i /andante/packages/andante.deb
unit installed

lingers
sounds
sleep 2
builds_beside
for samples in 64 128 256; do
	quantum $samples
	echo "REPORT late_$samples $(late "$1")"
done
for thread in $(ls /proc/$(pgrep -o -x pipewire)/task); do
	echo "THREAD $thread $(cat /proc/$thread/comm) $(chrt -p $thread 2>&1 | tr '\n' ' ')"
done
[ "$2" = stock ] || andante why --pid "$(pgrep -o -x pipewire)"
echo "REPORT built $(wc -l </home/ann/built)"
exit 0
