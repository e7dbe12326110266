#!/bin/sh
# What contracts are worth beside eight endless loops of the same class, on one CPU.
hog 8
hog 1
loop=$last
sleep 0.5 # what has just been made has the benefit of the doubt
echo "REPORT without $(parts 2 $loop)"
andante reserve $loop 4ms/10ms
echo "REPORT reserved $(parts 2 $loop)"
echo "REPORT contracts $(contracts)"
andante reserve --release $loop
echo "REPORT released $(parts 4 $loop)"
echo "REPORT contracts $(contracts)"

# A program that executes another keeps its contract; a child process has none.
andante exec --reserve 4ms/10ms -- sh -c 'sleep 0.5; exec sh -c "endless & exec endless"' &
sleep 1
executed=$(field process)
read -r child _ <"/proc/$executed/task/$executed/children"
echo "REPORT executed $(parts 2 "$executed")"
echo "REPORT child $(parts 2 "$child")"
kill -9 "$executed" "$child"
sleep 0.2
echo "REPORT contracts $(contracts)"

# One that works for a moment and sleeps.
andante exec --reserve 4ms/20ms -- sh -c 'while :; do for _ in $(seq 50); do :; done; usleep 20000; done' &
sleep 2
echo "REPORT jobs $(field deadlines)"
echo "REPORT missed $(field misses)"
kill -9 "$(field process)"
sleep 0.2
echo "REPORT contracts $(contracts)"

# All threads of a process, those that it starts later too; then one of them alone.
threads 2 >/tmp/threads &
process=$!
sleep 0.5
andante reserve $process 4ms/10ms
kill -USR1 $process
sleep 0.2
echo "REPORT threads $(field threads)"
echo "REPORT process $(parts 2 $process)"
andante reserve --release $process
thread=$(tail -n 1 /tmp/threads)
andante reserve "$thread" 4ms/10ms --thread
sleep 0.1 # it may wait for its turn among thirteen, and has the contract when it is queued anew
echo "REPORT thread $(parts 2 "$process/task/$thread")"
kill $process
sleep 0.2
echo "REPORT contracts $(contracts)"

# More threads than there can be contracts, 40 at a time, are learnt, and end.
for round in $(seq 27); do
	threads 40 1 60 >/dev/null &
	sleep 0.2
	[ "$round" != 27 ] ||
		echo "REPORT ending $(andante why --pid $! | grep -c 'learnt contract on CPU 0')"
	kill $!
done

# Contracts of more threads than there is room for at first; more is made when a process starts.
threads 40 1 200 >/tmp/threads &
process=$!
sleep 3
sleep 3
echo "REPORT learnt $(andante why --pid $process | grep -c 'learnt contract on CPU 0')"
kill $process
sleep 0.2
echo "REPORT contracts $(contracts)"

# The tasks of a class, those that come later too.
andante class create film
sh -c 'echo 0 >/sys/fs/cgroup/film/cgroup.procs; exec endless' &
first=$!
sleep 0.2
andante reserve film 4ms/10ms
sh -c 'echo 0 >/sys/fs/cgroup/film/cgroup.procs; exec endless' &
second=$!
# By its share alone the class would have half of the CPU.
andante class set film --weight 10
sleep 0.2
echo "REPORT class_first $(parts 2 $first)"
echo "REPORT class_second $(parts 2 $second)"
# One of them has a contract of its own besides: it comes out of the class's. What the class has of
# its share, beyond what it was promised, is to be next to nothing here.
andante class set film --weight 1
andante reserve $first 2ms/10ms
parts 2 $first $second | sed 's/^/REPORT nested /'
echo "REPORT contracts $(contracts)"
kill -9 $first $second
wait $first $second

# Nothing is learnt of those whose class has been promised something better.
threads 1 2 18 >/tmp/threads &
process=$!
sleep 1
echo "REPORT learnt_alone $(andante why --pid $process | grep -c 'learnt contract on CPU 0')"
echo $process >/sys/fs/cgroup/film/cgroup.procs
sleep 0.5
echo "REPORT learnt_in_class $(andante why --pid $process | grep -c 'learnt contract on CPU 0')"
echo "REPORT promised_in_class $(andante why --pid $process | grep -c 'contract of its class on CPU 0')"
kill $process
wait $process
sleep 0.1
andante class remove film
echo "REPORT contracts $(contracts)"

# A soft one goes on beyond its budget, but leaves the others their part; a hard one beside it keeps
# what it was promised.
andante reserve $loop 2ms/10ms --soft --flexible
endless & hard=$!
andante reserve $hard 3ms/10ms
sleep 0.5
parts 2 $loop $hard | sed 's/^/REPORT soft /'
kill -9 $hard
wait $hard
andante reserve --release $loop
andante reserve $loop 4ms/10ms --flexible
andante status | sed 's/^/STATUS /'
andante top --once | sed 's/^/TOP /'
echo "REPORT in_status $(andante status --interval 0.1 | grep -c "^endless-$loop ")"
echo "REPORT in_top $(andante top --once --interval 0.1 | grep -c "^endless-$loop ")"
kill -INT $scheduler
wait $scheduler
echo "REPORT left_with $?"
kill $hogs
exit 0
