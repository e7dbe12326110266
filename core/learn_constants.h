/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All numbers of what is learnt (rhythm.h, learn.h, learnt.h), each with its unit and why it is
 * what it is. `dist/sensitivity.sh` halves and doubles each, and prints what that does to families
 * of drawn workloads. Times are in ns, parts of a CPU in 1/1024.
 */
#ifndef ANDANTE_CORE_LEARN_CONSTANTS_H
#define ANDANTE_CORE_LEARN_CONSTANTS_H

/* So many beats make a rhythm; so many events or jobs tell what a task does. With four keys seem to
 * have a rhythm ten times as often, and with eight a film is known too late. */
#define AN_LEARN_ENOUGH 6u
/* Averages are over so many, a rhythm survives so many missed beats, and what others are sure of
 * falls and rises by one in so many: a group of frames, whose first is the longest, has twelve to
 * eighteen. */
#define AN_LEARN_AVERAGED 16u
/* Nothing is told by an event that is longer ago, or by two that are further apart: four groups of
 * frames at 24 a second. */
#define AN_LEARN_MEMORY_NS 2000000000u
/* A longer job nobody waits for: a frame at 24 a second has 41.7 ms. */
#define AN_LEARN_SERVICE_MAX_NS 40000000ULL
/* A job of that length is due after twice its length, and a longer one later still, so that many
 * short ones come before it: as long as a key may take. */
#define AN_LEARN_LONG_NS 10000000ULL
/* A task with a rhythm is due after half a beat, but no later than after so many times the CPU time
 * that it needs. With four, keys beside four films of 24 frames took up to 12 ms in some phases;
 * with eight 4.4. */
#define AN_LEARN_SHORT_JOBS 8u
/* A job is taken to need this at least: a tenth of the resolution of a refill. */
#define AN_LEARN_SERVICE_MIN_NS 100000ULL
/* The largest job is that of so many, if they take less than AN_LEARN_MEMORY_NS. Not derived. */
#define AN_LEARN_WINDOW_JOBS 128u
/* A task that is woken later than that after an event is not woken for it. Not derived: a film that
 * is late works for an event of long ago. */
#define AN_LEARN_ROOTED_NS 1000000000ULL
/* A contract is sure of its task's average and a sixteenth of a CPU. One key may follow on another:
 * 2.5 ms for it are there again after 40. */
#define AN_LEARN_MARGIN 64u
/* A task that wakes sooner goes on with its job, and one that is served keeps its place for as
 * long: below that, hand-overs and looks cost more than they order. */
#define AN_LEARN_DISTANCE_MIN_NS 500000u
/* A task that sleeps for so long waits for people: a frame at 30 a second. */
#define AN_LEARN_PEOPLE_NS 33000000u
/* A contract with nothing left waits until it has so much, or for AN_LEARN_WAIT_MAX_NS if that is
 * sooner. */
#define AN_LEARN_REFILL_NS 1000000LL
#define AN_LEARN_WAIT_MAX_NS 100000000ULL
/* A contract whose task has slept for so long is not sure of anything: longer than between two
 * frames, or two keys of somebody who types. */
#define AN_LEARN_ASLEEP_NS 250000000ULL

#endif
