#!/bin/sh
# What is answered to those who ask for contracts, and what is left of contracts whose holders go.
mkdir -p /etc
cat >/etc/passwd <<-EOT
	root:x:0:0::/:/bin/sh
	kim:x:1000:1000::/:/bin/sh
	lee:x:1001:1001::/:/bin/sh
EOT
printf 'root:x:0:\nkim:x:1000:\nlee:x:1001:\nandante:x:50:lee\n' >/etc/group
as() { # USER COMMAND
	su "$1" -c "$2"
}
hog 1
loop=$last
try more_than_all andante reserve $loop 40ms/33ms
try no_budget andante reserve $loop 0ms/33ms
try no_period andante reserve $loop 0ms/0ms
try too_many_losses andante reserve $loop 4ms/10ms --tolerate 5/1
try too_long andante reserve $loop 4s/5s
try beyond andante reserve $loop 9ms/10ms
try beyond_exec andante exec --reserve 9ms/10ms -- sh -c :
try no_process andante reserve 99999 4ms/10ms
try no_thread andante reserve 99999 4ms/10ms --thread
try kernel_thread andante reserve 2 4ms/10ms
try unknown_class andante reserve /nowhere 4ms/10ms
try yes andante reserve $loop 4ms/10ms
try again andante reserve $loop 4ms/10ms
try holders andante reserve $$ 6ms/10ms
try dry_run andante reserve $$ 2ms/10ms --dry-run
try unknown_contract andante reserve --release nobody
try released andante reserve --release endless-$loop
try not_found andante exec --reserve 1ms/10ms -- no-such-program
try both andante exec --class brief --reserve 1ms/10ms --name both -- sh -c 'cat /proc/self/cgroup; andante reserve --list'
echo "REPORT contracts $(contracts)"

as kim 'sleep 1000' &
sleep 0.3
kims=$(pidof sleep)
try kim_own as kim "andante reserve $kims 1ms/20ms"
try kim_more as kim "andante exec --reserve 1ms/10ms -- sh -c :"
try kim_roots as kim "andante reserve $loop 1ms/20ms"
try kim_list as kim 'andante reserve --list'
try lee_roots as lee "andante reserve $loop 1ms/20ms"
try kim_releases_lees as kim "andante reserve --release $loop"
try lee_releases_kims as lee "andante reserve --release $kims"
andante reserve --release $loop
kill $kims

# Holders that go in every way leave nothing behind.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	andante exec --reserve 4ms/10ms -- sh -c :
	threads 1 20 >/tmp/threads &
	process=$!
	sleep 0.05
	andante reserve "$(tail -n 1 /tmp/threads)" 4ms/10ms --thread >/dev/null 2>&1
	sleep 0.2
	kill -9 $process
	andante class create brief
	andante reserve brief 4ms/10ms >/dev/null
	rmdir /sys/fs/cgroup/brief
	endless &
	andante reserve $! 4ms/10ms >/dev/null
	kill -9 $!
done
sleep 0.2
echo "REPORT contracts $(contracts)"
hog 1
andante reserve $loop 8ms/10ms
echo "REPORT share $(parts 2 $loop)"

# The daemon is killed: contracts are gone, programs are not, and the next one starts afresh.
kill -9 $scheduler
wait $scheduler
while [ "$(state)" != disabled ]; do sleep 0.05; done
try after_kill andante reserve --list
try nobody_to_ask andante reserve $loop 4ms/10ms
try exec_without andante exec --reserve 4ms/10ms -- sh -c :
kill -0 $loop && echo "REPORT loop_alive 1"
in_charge --leave 50 --user-quota 50
echo "REPORT contracts $(contracts)"
try half andante reserve $loop 6ms/10ms
try new_quota as kim 'andante exec --reserve 4ms/10ms -- sh -c :'
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
[ -e /run/andante.sock ] || echo "REPORT socket_gone 1"
kill $hogs
exit 0
