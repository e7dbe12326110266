# SPDX-License-Identifier: GPL-2.0
# Reservations are made, refused, changed, released, and put back whatever ends.
. /andante/common.sh

mkdir -p $cgroups/media/film $cgroups/build
echo +cpu +memory >$cgroups/cgroup.subtree_control
echo $((20 << 20)) >$cgroups/build/memory.min
begin

try film andante reserve /media/film --memory 100M
report film-min "$(min media/film)"
report media-min "$(min media)"
report keepers "$(keeper | wc -l)"
try again andante reserve /media/film --memory 120M --lend 50%
report changed-min "$(min media)"
try too-much andante reserve /build --memory 5G
try nothing andante reserve /build --memory 0
try unknown andante reserve /none --memory 10M
try root andante reserve / --memory 10M
try both andante reserve /build 1ms/20ms --memory 30M
report both-min "$(min build)"
try neither andante reserve /build 50ms/20ms --memory 40M
report neither-min "$(min build)"
andante reserve --list
andante reserve --list --json | grep -c '"lend_per_mille": 500' | { read -r n; report listed "$n"; }
try release andante reserve --release /build
report released-min "$(min build)"
try gone andante reserve --release /build

# Without a class a program gets one for as long as it runs.
andante exec --reserve-memory 64M -- sh -c 'grep ^0 /proc/self/cgroup | sed s/0:/CLASS/; sleep 2' >/andante/exec.log &
sleep 1
cat /andante/exec.log
own=$(sed -n 's/CLASS:\///p' /andante/exec.log)
report own-min "$(min "$own")"
wait $!
[ -d "$cgroups/$own" ] && report own-stays 1 || report own-stays 0
try refused-exec andante exec --reserve-memory 9G -- true
try exec-status andante exec --class media/game --reserve-memory 32M -- sh -c 'exit 7'
[ -d "$cgroups/media/game" ] && report game-stays 1 || report game-stays 0
report after-exec-min "$(min media)"

# Somebody else changes it.
echo 0 >$cgroups/media/memory.min
until_is 120 min media
grep -c 'somebody has set it' /andante/run.log | { read -r n; report said "$n"; }

# The keeper is killed, and runs again.
kill -9 "$(keeper)"
sleep 3
report keeper-again "$(keeper | wc -l)"
report kept-min "$(min media/film)"

# The class goes.
rmdir $cgroups/media/film
until_is 0 min media
report no-keeper "$(keeper | wc -l)"

# The daemon is killed: its keeper puts back what was before.
mkdir $cgroups/media/film
andante reserve /media/film --memory 100M
kill -9 "$daemon"
until_is 0 min media/film
until_is 0 min media
report build-min "$(min build)"
until_is '' keeper
[ -e $state ] && report state 1 || report state 0

# Both are killed at once: the next one does.
begin
andante reserve /media/film --memory 100M
kill -9 "$daemon" "$(keeper)"
sleep 0.5
report left-min "$(min media)"
begin
report restored-min "$(min media)"
andante reserve /media/film --memory 100M
end
report ended-min "$(min media)"
[ -e $state ] && report ended-state 1 || report ended-state 0
