# SPDX-License-Identifier: GPL-2.0
# More is wanted than there is, without any swap: whoever is within a reservation is not killed. Then reservations come and go
# at random, with what may end them, and nothing is left of them.
. /andante/common.sh

mkdir -p $cgroups/film $cgroups/hogs $cgroups/media/a $cgroups/media/b
echo +cpu +memory >$cgroups/cgroup.subtree_control
compaction=/proc/sys/vm/compact_unevictable_allowed
echo 1 >$compaction
# Nothing is reserved that nobody has asked for.
begin --learn-memory 0

uses() { # CLASS MIB SECONDS: a program with so much memory, for so long
	in_class "$1" sh -c '(head -c "$1" /dev/zero; sleep "$2") | tail -c "$1" >/dev/null' - $(($2 << 20)) "$3" &
}
has() { # CLASS MIB: whether it has so much
	[ "$(mib "$cgroups/$1/memory.current")" -ge "$2" ] && echo 1 || echo 0
}
storm() { # ten programs of 50 MB in a machine of 512 MB, all at once
	jobs=
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		uses hogs 50 4
		jobs="$jobs $!"
	done
	# Of some the kernel has killed a part.
	wait $jobs || true
}
killed() { # CLASS: programs of it, so far
	sed -n 's/^oom_kill //p' "$cgroups/$1/memory.events"
}
largest() { # CLASS: the one of its programs that has most
	for pid in $(cat "$cgroups/$1/cgroup.procs"); do
		echo "$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status") $pid"
	done | sort -n | sed -n '$s/.* //p'
}

# It has twice as much as each of the others.
uses film 100 1000
until_is 1 has film 100
film=$(largest film)
andante reserve /film --memory 120M
until_is 1 sh -c "[ \$(cat /proc/$film/oom_score_adj) -lt 0 ] && echo 1 || echo 0"
storm
[ -d "/proc/$film" ] && report film-lives 1 || report film-lives 0
report film-killed "$(killed film)"
report hogs-killed "$(killed hogs)"
andante reserve --release /film
until_is 0 cat "/proc/$film/oom_score_adj"
report adjusted-again "$(cat "/proc/$film/oom_score_adj")"
# Without it the film is the first.
storm
[ -d "/proc/$film" ] && report unreserved-lives 1 || report unreserved-lives 0

seed=1
draw() { # COUNT: a number below that
	seed=$(((seed * 1103515245 + 12345) & 0x7fffffff))
	drawn=$(((seed >> 12) % $1))
}
class() { # a class, of all that there are
	draw 4
	case $drawn in
	0) class=media ;;
	1) class=media/a ;;
	2) class=media/b ;;
	3) class=film ;;
	esac
}
unprotected=0
steps=0
while [ $steps -lt 12 ]; do
	steps=$((steps + 1))
	class
	draw 9
	case $drawn in
	0 | 1 | 2)
		draw 5
		mib=$((drawn * 30 + 10))
		if andante reserve "/$class" --memory ${mib}M >/dev/null 2>&1 && [ "$(min $class)" -lt $mib ]; then
			echo "step $steps: $class has $(min $class) of $mib"
			unprotected=$((unprotected + 1))
		fi
		;;
	3) andante reserve --release "/$class" >/dev/null 2>&1 || true ;;
	4) andante exec --reserve-memory 40M -- sh -c '(sleep 1 &); sleep 0.5' >/dev/null 2>&1 & ;;
	5) uses "$class" 20 1 ;;
	6) for _ in 1 2 3 4; do uses hogs 50 1; done ;;
	7)
		# A class goes, and another of its name comes.
		if rmdir "$cgroups/media/b" 2>/dev/null; then mkdir "$cgroups/media/b"; fi
		;;
	8)
		# The daemon is killed, in one of two cases with its keeper.
		draw 2
		[ $drawn = 1 ] && kill -9 "$(keeper)" 2>/dev/null
		kill -9 "$daemon"
		sleep 0.3
		begin
		;;
	esac
done
report steps $steps
report unprotected $unprotected
sleep 3
andante reserve --list
for class in media media/a media/b film; do
	andante reserve --release "/$class" || true
done
andante reserve --list
ls /run/andante
kill "$film" 2>/dev/null || true
end
tail -20 /andante/run.log
left=0
for class in media film hogs; do
	left=$((left + $(min $class)))
done
report left-min $left
[ -e $state ] || [ -e /run/andante/memory.oom.json ] && report left-state 1 || report left-state 0
report left-keepers "$(keeper | wc -l)"
report compaction "$(cat $compaction)"
