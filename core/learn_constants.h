/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All numbers of what is learnt (rhythm.h, learn.h, learnt.h), each with its unit and why it is
 * what it is. `dist/sensitivity.sh` halves and doubles each, and prints what that does to families
 * of drawn workloads. Times are in ns, parts of a CPU in 1/1024.
 */
#ifndef ANDANTE_CORE_LEARN_CONSTANTS_H
#define ANDANTE_CORE_LEARN_CONSTANTS_H

/* So many beats make a rhythm, so many events or jobs tell what a task does. With four keys seem to
 * have a rhythm ten times as often, and with eight a film is known too late. */
#define AN_LEARN_ENOUGH 6u
/* Averages are over so many, a rhythm survives so many missed beats, and what others are sure of
 * falls and rises by one in so many: a group of frames, whose first is the longest, has twelve to
 * eighteen. */
#define AN_LEARN_AVERAGED 16u
/* What is longer ago, or further apart, says nothing any more: four groups of frames at 24 a
 * second. */
#define AN_LEARN_MEMORY_NS 2000000000u
/* A longer job nobody waits for: a frame at 24 a second has 41.7 ms. */
#define AN_LEARN_SERVICE_MAX_NS 40000000ULL
/* A job of that length is due after twice its length, and a longer one later still, so that many
 * short ones come before it: as long as a key may take. */
#define AN_LEARN_LONG_NS 10000000ULL
/* Who has a rhythm is due after half a beat, but no later than after so many times what it needs:
 * with four, four films of 24 frames had keys within 12 ms in some phases, with eight within 4.4.
 */
#define AN_LEARN_SHORT_JOBS 8u
/* A job is taken to need this at least: a tenth of the resolution of a refill. */
#define AN_LEARN_SERVICE_MIN_NS 100000ULL
/* The largest job is that of so many, if they take less than AN_LEARN_MEMORY_NS. Not derived. */
#define AN_LEARN_WINDOW_JOBS 128u
/* Whoever is woken later than that after an event is not woken for it. Not derived: a film that is
 * late works for an event of long ago. */
#define AN_LEARN_ROOTED_NS 1000000000ULL
/* What is sure is the average and a sixteenth of a CPU: of who types one key may follow on another,
 * and 2.5 ms for it are there again in 40. */
#define AN_LEARN_MARGIN 64u
/* Who wakes sooner goes on with its job, and who is served keeps its place for as long: below that
 * hand-overs and looks cost more than they order. */
#define AN_LEARN_DISTANCE_MIN_NS 500000u
/* Who sleeps for so long waits for people: a frame at 30 a second. */
#define AN_LEARN_PEOPLE_NS 33000000u
/* Who has nothing left waits until there is so much, but not for longer than AN_LEARN_WAIT_MAX_NS
 * before it is looked at again. */
#define AN_LEARN_REFILL_NS 1000000LL
#define AN_LEARN_WAIT_MAX_NS 100000000ULL
/* Who has slept for so long is not sure of anything: longer than between two frames, or two keys of
 * who types. */
#define AN_LEARN_ASLEEP_NS 250000000ULL

#endif
