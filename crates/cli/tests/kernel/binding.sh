#!/bin/sh
# Whose share a server works with: its class weighs 4, that of its client 100, and so does a loop's.
cgroup=/sys/fs/cgroup

in_class() { # CLASS COMMAND…: in the background, as $last
	sh -c 'echo 0 >/sys/fs/cgroup/$0/cgroup.procs; exec "$@"' "$@" &
	last=$!
}

# The first three requests are done with the server's own share: 2 ms every 50 or 100.
settle() { sleep 1.5; }

# KEY WORD WORD: share of the CPU that the first of two peers gets while the second asks or feeds
pair() {
	in_class server peers "$2" /tmp/$1
	server=$last
	in_class client peers "$3" /tmp/$1
	client=$last
	settle
	echo "REPORT $1 $(parts 4 $server)"
	kill $client $server
}

for class in server client loop; do
	andante class create $class --weight 100
done
andante class set server --weight 4
in_class loop endless
hogs=$last
pair answers serve ask
pair late late ask
pair silent swallow feed
pair woken sound play
pair stranger sound intrude

# Clients whose class goes while the server is at work for them: it goes on for the next.
in_class server peers serve /tmp/server
server=$last
for _ in 1 2 3; do
	mkdir $cgroup/brief
	echo 100 >$cgroup/brief/cpu.weight
	in_class brief peers ask /tmp/server
	settle
	echo "REPORT brief $(parts 4 $server)"
	kill -KILL $last
	wait $last
	rmdir $cgroup/brief && echo "REPORT removed 1"
	settle # one that never sleeps cannot be asked by waking it
done
sleep 0.2
echo "REPORT alive $(kill -0 $server && echo 1)"
echo "REPORT state $(state)"
kill $server
kill -INT $scheduler
wait $scheduler

in_charge --learn 0 --no-binding
pair unbound serve ask
kill $hogs
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
