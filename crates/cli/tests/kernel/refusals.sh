#!/bin/sh
# What the command line answers to what it cannot do; each answer is reported with its status.
. /andante/common.sh

cgroups() { find /sys/fs/cgroup -type d | wc -l; }

try status_without_scheduler andante status
echo 'learn_percent = 95' >/tmp/wrong.toml
try wrong_config andante run --config /tmp/wrong.toml
try no_config andante run --config /tmp/none.toml
mkdir -p /etc/andante.d
echo 'learn_percent = 50' >/etc/andante.toml
echo 'learn_percent = 0' >/etc/andante.d/quiet.toml
in_charge
echo "REPORT learn_off $(andante why --pid $$ | grep -c 'none is learnt')"
try second_scheduler andante run

andante class create /film --weight 300
andante class create /parent/child
sh -c 'echo 0 >/sys/fs/cgroup/film/cgroup.procs; exec sleep 1000' &
sleep 0.5
before=$(cgroups)
try unknown_class andante class set /nowhere --weight 10
try class_exists andante class create /film
try class_with_tasks andante class remove /film
try class_with_children andante class remove /parent
try weight_out_of_range andante class set /film --weight 0
try no_such_process andante class move 999999 /film
try kernel_thread andante class move 2 /film
try command_not_found andante exec --class /brief -- no-such-program
echo "REPORT nothing_left $(($(cgroups) - before))"
exit 0
