# SPDX-License-Identifier: GPL-2.0
# What a user without privilege does, see main.rs.
. /andante/common.sh
. /andante/ann.sh
dpkg -i /andante/packages/andante.deb
unit installed

who='id -un; echo $HOME $XDG_RUNTIME_DIR $MINE $SUDO_UID; sed s/.*:// /proc/self/cgroup'
try_as_ann sudo "sudo andante exec --class film --weight 300 -- sh -c '$who'"
try_as_ann sudo_as_root "sudo andante exec --as-root --class film -- id -un"
try_as_ann sudo_asked "sudo MINE=asked andante exec --class film -- sh -c 'echo \$MINE'"
try_as_ann sudo_reserve "sudo andante exec --reserve 1ms/20ms -- id -un"
try_as_ann own "andante exec --class film --weight 300 -- sh -c 'id -un; p=\$(sed s/.*:// /proc/self/cgroup); echo \$p; cat /sys/fs/cgroup\$p/cpu.weight'"
try_as_ann own_reserve "andante exec --reserve 1ms/20ms -- id -un"
try_as_ann own_both "andante exec --class film --weight 300 --reserve 1ms/20ms -- id -un"
min='p=$(sed s/.*:// /proc/self/cgroup); echo $(id -un) $(cat /sys/fs/cgroup$p/memory.min)'
try_as_ann own_memory "andante exec --reserve-memory 16M -- sh -c '$min'"
try_as_ann own_memory_and_cpu "andante exec --reserve 1ms/20ms --reserve-memory 16M -- sh -c '$min'"
try_as_ann own_memory_too_much "andante exec --reserve-memory 900M -- id -un"
try_as_ann sudo_memory "sudo andante exec --reserve-memory 16M -- sh -c '$min'"
try_as_ann own_failing "andante exec --class film -- sh -c 'exit 5'"
before=$(cut -d' ' -f1 /proc/uptime)
as_ann 'andante status --interval 0.05 && andante reserve --list' >/dev/null
echo "REPORT looks_took_s $(awk -v before="$before" '{ print $1 - before }' /proc/uptime)"
exit 0
