#!/bin/sh
# More cgroups than there is room for classes; then some of them go.
cd /sys/fs/cgroup || exit 1
echo +cpu >cgroup.subtree_control
mkdir fill
echo +cpu >fill/cgroup.subtree_control
(cd fill && mkdir $(seq 8200))
try create andante class create /late --weight 300
try below andante class create /late/below
try set andante class set /late --weight 300
try status andante status --interval 0.1
try doctor andante doctor
shared() { andante status --interval 0.1 --json | sed -n 's/.*"shared": \([0-9]*\).*/\1/p'; }
echo "REPORT shared $(shared)"
sh -c 'echo 0 >/sys/fs/cgroup/late/below/cgroup.procs; exec endless' &
late=$!
endless &
root=$!
sleep 0.5
echo "REPORT with_parent $(parts 2 $late $root | tr '\n' ' ')"

(cd fill && rmdir $(seq 100))
sleep 2.5
echo "REPORT shared $(shared)"
try set_again andante class set /late --weight 300
echo "REPORT of_its_own $(parts 2 $late $root | tr '\n' ' ')"
kill $late $root
sleep 0.5
rmdir late/below late
echo "REPORT state $(state)"
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
exit 0
