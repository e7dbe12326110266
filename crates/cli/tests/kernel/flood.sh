# SPDX-License-Identifier: GPL-2.0
# Users flood the daemon's socket from a class of their own; root and another user ask, and SIGTERM ends it.
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
mkdir /sys/fs/cgroup/users
floods=
for user in "1000 connects" "1001 connects" "1002 connects" "1003 half-open" "1004 reads-nothing"; do
	sh -c "echo 0 >/sys/fs/cgroup/users/cgroup.procs; exec flood $user" &
	floods="$floods $!"
done
sleep 0.5
flood 0 asks >root.asks &
asking=$!
echo "REPORT user $(flood 2000 asks)"
wait $asking
echo "REPORT root $(cat root.asks)"
try reserve andante reserve --list
hundredths() { read -r up _ </proc/uptime && echo "${up%.*}${up#*.}"; }
begun=$(hundredths)
kill -TERM $scheduler
wait $scheduler
echo "REPORT status $?"
echo "REPORT term_ms $((($(hundredths) - begun) * 10))"
echo "REPORT state $(state)"
kill $floods
wait
