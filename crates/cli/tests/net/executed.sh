#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A program that is started with a contract of the network, in the class of the least weight, beside five senders of
# the largest datagrams; what is refused, and what is left when it has ended or somebody was killed.
. /andante/common.sh
class film 1
for n in 1 2 3 4 5; do
	class bulk$n 1000
done
with() { # BUDGET COMMAND…: in the film's class
	budget=$1
	shift
	andante exec --class film --reserve-net "$budget" -- "$@"
}
held() { # how many contracts there are
	andante net status --json | grep -c '"promised": {' || true
}
by_contract() { # bytes of the film's class
	andante net status --json |
		sed -n '/"class": "\/film"/,/"delay"/s/.*"promised_bytes": \([0-9]*\),*/\1/p'
}
bulk() { # SECONDS
	for n in 1 2 3 4 5; do
		in_class bulk$n packets send 10.0.0.2 100$n 1472 1000 "$1" &
	done
}

printf '#!/bin/sh\n: >/tmp/started\n' >/tmp/start
chmod +x /tmp/start
try nowhere with 900kbit/10ms /tmp/start
andante net attach out --rate 10mbit
mkdir -p /etc
echo 'kim:x:1000:1000::/:/bin/sh' >/etc/passwd
try unprivileged su kim -c '/andante/bin/andante exec --class film --reserve-net 900kbit/10ms -- /tmp/start'
try no_class andante exec --reserve-net 900kbit/10ms -- /tmp/start
# Nine of ten are more than there is: a fifth is left to others.
try too_much with 9mbit/10ms /tmp/start >/tmp/offers 2>&1
cat /tmp/offers
echo "REPORT offers $(grep -c 'would be admitted' /tmp/offers)"
try elsewhere with lo:900kbit/10ms /tmp/start
try missing with out:900kbit/10ms /no/such/program
[ -e /tmp/started ] && exit 1
echo "REPORT refused_left $(held)"

there packets sink udp 2 10 1001 1002 1003 1004 1005 1006 &
sink=$!
bulk 13
with 900kbit/10ms packets send 10.0.0.2 1006 1000 10000 13 &
executed=$!
sleep 3
echo "REPORT runs_held $(held)"
wait $sink $executed
andante net status
echo "REPORT ended_left $(held)"

# Its starter is killed: it goes on, with what it was promised, until it ends as well. Then the class sends by
# its share, though nobody has taken anything back.
andante exec --class film --reserve-net 900kbit/10ms -- sh -c 'sleep 60; exit' &
executed=$! # not that of a shell around it
while [ "$(held)" = 0 ]; do sleep 0.1; done
grep -q andante /proc/$executed/comm
kill -9 $executed
wait $executed || true
echo "REPORT orphan_held $(held)"
andante net status | grep 'until sh '
try second with 900kbit/10ms /tmp/start
beside_bulk() { # KEY: bytes that the film sends by contract in a second
	before=$(by_contract)
	bulk 2
	sleep 0.5
	in_class film packets send 10.0.0.2 1006 1000 10000 1
	echo "REPORT $1 $(($(by_contract) - before))"
	sleep 1
}
beside_bulk promised
echo 1 >$cgroups/film/cgroup.kill
sleep 0.2
beside_bulk unpromised
echo "REPORT killed_left $(held)"
try room andante net reserve out /film 3mbit/10ms
try alone andante reserve --list >/tmp/alone
cat /tmp/alone
echo "REPORT alone_listed $(grep -c '^out:/film  */film  *3mbit/10ms' /tmp/alone)"
try alone_status andante status >/tmp/alone
cat /tmp/alone
echo "REPORT alone_shown $(grep -c '^out:/film  */film  *3mbit/10ms' /tmp/alone)"
echo "REPORT alone_json $(andante status --json | grep -c '"name": "out:/film"')"
as_kim() { # COMMAND
	su kim -c "/andante/bin/andante $1"
}
try kim_status as_kim status >/tmp/alone
cat /tmp/alone
echo "REPORT kim_told $(grep -c 'Andante is on out, where only root sees contracts' /tmp/alone)"
echo "REPORT kim_shown $(grep -c 3mbit /tmp/alone || true)"
try kim_releases as_kim 'reserve --release out:/film'
try instead with 900kbit/10ms /tmp/start
# By the name that the list has, and the class that it has.
try release_unknown andante reserve --release out:/bulk1
try released andante reserve --release out:/film
try released_again andante reserve --release out:/film
andante net reserve out /film 3mbit/10ms
try released_class andante reserve --release /film
echo "REPORT released_left $(held)"

# Contracts of the CPU as well: both, or none.
andante run &
running=$!
while ! andante status --interval 0.05 >/dev/null 2>&1; do
	kill -0 $running # this kernel may have none (6.17)
	sleep 0.1
done
try no_cpu andante exec --class film --reserve 99ms/100ms --reserve-net 900kbit/10ms -- /tmp/start
try no_net andante exec --class film --reserve 1ms/100ms --reserve-net 9mbit/10ms -- /tmp/start
[ -e /tmp/started ] && exit 1
echo "REPORT none_left $(andante reserve --list | grep -c film || true)"
bulk 3
andante exec --class film --reserve 1ms/100ms --reserve-net 900kbit/10ms -- \
	packets send 10.0.0.2 1006 1000 10000 3 &
executed=$!
sleep 1
andante reserve --list >/tmp/list
cat /tmp/list
echo "REPORT both_held $(grep -cE '^(packets|out:/film .*packets)' /tmp/list)"
echo "REPORT in_json $(andante reserve --list --json | grep -c '"device": "out"')"
andante top --once --interval 0.5 >/tmp/top
cat /tmp/top
echo "REPORT top_contract $(grep -c '^out:/film  *packets ' /tmp/top)"
echo "REPORT top_sent $(grep -c 'film.*kbit' /tmp/top)"
andante status --interval 0.5 >/tmp/status
cat /tmp/status
echo "REPORT status_contract $(grep -cE '^(packets-|out:/film ).*packets .*(kbit| %)' /tmp/status)"
echo "REPORT status_json $(andante status --interval 0.5 --json | grep -c '"sent_rate": [1-9]')"
try kim_sees as_kim 'status --interval 0.05' >/tmp/status
cat /tmp/status
echo "REPORT kim_told_too $(grep -c 'Andante is on out, where only root sees contracts' /tmp/status)"
andante why --pid "$(cat $cgroups/film/cgroup.procs)" >/tmp/why
cat /tmp/why
echo "REPORT why $(grep -c 'packets of /film.*by out' /tmp/why)"
# By its process: that of the CPU, and then that of the network.
try release_cpu andante reserve --release "$(cat $cgroups/film/cgroup.procs)" 2>/tmp/left
cat /tmp/left
echo "REPORT left_told $(grep -c 'andante reserve --release out:/film' /tmp/left)"
try release_net andante reserve --release "$(cat $cgroups/film/cgroup.procs)"
echo "REPORT process_left $(andante reserve --list | grep -c film || true)"
wait $executed
echo "REPORT both_left $(andante reserve --list | grep -c film || true)"
echo "REPORT warnings $(dmesg | grep -cE 'WARNING|BUG|refcount|unregister_netdevice')"
