// SPDX-License-Identifier: GPL-2.0
/* Contracts of a link: who goes first, for how much, and how late what is promised is at most. */
#include "packets_fixture.h"
#include "random.h"

#define TEN_MBIT 1250000u /* bytes a second */
#define LARGEST 1500u
#define LARGEST_NS (LARGEST * AN_SECOND_NS / TEN_MBIT)

#define MAX_SENDERS 8u

/* One that has so many bytes to send in every period, in packets of a size; or all the time. */
struct sender {
	u32 leaf, size, bytes;
	u64 period_ns;
	u64 next_ns; /* of the next period */
	u64 sent;    /* bytes */
	u64 worst_ns;
};

static struct sender senders[MAX_SENDERS];
static u64 arrived_ns[MAX_SENDERS][AN_MAX_PACKETS]; /* of packets that wait, in order */
static u32 first[MAX_SENDERS], behind[MAX_SENDERS];

static void begin_senders(void)
{
	begin_packets(TEN_MBIT, 10000000);
	memset(senders, 0, sizeof(senders));
	memset(first, 0, sizeof(first));
	memset(behind, 0, sizeof(behind));
}

static void packet_of(u32 i)
{
	/* Each is a flow of its own, so that CoDel, which is for flows, stands aside. */
	arrive(senders[i].leaf, 100000 * i + arrivals, senders[i].size);
	arrived_ns[i][behind[i]++ % AN_MAX_PACKETS] = now_ns;
}

static void senders_send(void)
{
	for (u32 i = 0; i < MAX_SENDERS; i++) {
		struct sender *s = &senders[i];

		if (!s->leaf)
			continue;
		while (!s->period_ns && behind[i] - first[i] < 10)
			packet_of(i);
		if (!s->period_ns || now_ns < s->next_ns)
			continue;
		for (u32 bytes = 0; bytes + s->size <= s->bytes; bytes += s->size)
			packet_of(i);
		s->next_ns += s->period_ns;
	}
}

/* When the link is free, or a sender sends. */
static void until_next(void)
{
	u64 next_ns = q.link.next_ns > now_ns ? q.link.next_ns : AN_NEVER;

	for (u32 i = 0; i < MAX_SENDERS; i++)
		if (senders[i].period_ns && senders[i].next_ns < next_ns)
			next_ns = senders[i].next_ns;
	CHECK(next_ns != AN_NEVER);
	now_ns = next_ns;
}

static void run_senders(u64 for_ns)
{
	u64 end_ns = now_ns + for_ns;

	while (now_ns < end_ns) {
		senders_send();
		if (next() == AN_SENT) {
			u32 i = last.hash / 100000;
			u64 waited_ns = now_ns - arrived_ns[i][first[i]++ % AN_MAX_PACKETS];

			senders[i].sent += last.bytes;
			if (waited_ns > senders[i].worst_ns)
				senders[i].worst_ns = waited_ns;
			continue;
		}
		until_next();
	}
}

/* A film's packet of 1 kB every 10 ms, as promised, beside five of this weight that send all the
 * time. */
static void film_beside_floods(u32 weight)
{
	begin_senders();
	for (u32 i = 1; i < 6; i++)
		senders[i] =
			(struct sender){.leaf = class_below(AN_ROOT_LEAF, weight), .size = LARGEST};
	senders[0] = (struct sender){.leaf = class_below(AN_ROOT_LEAF, 1),
				     .size = 1000,
				     .bytes = 1000,
				     .period_ns = 10 * MS,
				     .next_ns = now_ns};
	CHECK_EQ(an_packets_promise(&q, senders[0].leaf, 1000, 10 * MS, now_ns), 0);
}

/* It waits for one of theirs. */
TEST(a_promised_packet_waits_for_one)
{
	film_beside_floods(100);
	run_senders(2000 * MS);
	CHECK_EQ(senders[0].sent, 200 * 1000);
	CHECK(senders[0].worst_ns <= LARGEST_NS);
	CHECK_EQ(counts(senders[0].leaf)->promised, 200 * 1000);
}

/* A class that has sent nothing for long, while others did, has what it is promised as before. */
TEST(a_promise_outlasts_silence)
{
	film_beside_floods(1000);
	for (u64 silent_ns = 5 * MS; silent_ns < 20000 * MS; silent_ns *= 2) {
		counts(senders[0].leaf)->promised = 0;
		run_senders(1000 * MS);
		CHECK_EQ(counts(senders[0].leaf)->promised, 100 * 1000);
		senders[0].next_ns = now_ns + silent_ns;
		run_senders(silent_ns);
	}
	CHECK(senders[0].worst_ns <= LARGEST_NS);
}

/* It can have no more than that before others: a flood has its budget, and of the rest its share.
 */
TEST(beyond_its_budget_a_class_has_its_share)
{
	u64 flood = 0, sent;

	begin_senders();
	for (u32 i = 0; i < 2; i++)
		senders[i] = (struct sender){.leaf = class_below(AN_ROOT_LEAF, 100), .size = 1000};
	CHECK_EQ(an_packets_promise(&q, senders[0].leaf, 2500, 10 * MS, now_ns), 0);
	run_senders(4000 * MS);
	sent = senders[0].sent + senders[1].sent;
	flood = counts(senders[0].leaf)->promised;
	/* A fifth is promised, of the rest each has half. */
	CHECK(flood >= 4000 / 10 * 2500 - 2500 && flood <= 4000 / 10 * 2500 + 2500 + LARGEST);
	CHECK(senders[0].sent * 10 >= sent * 6 - 40000 && senders[0].sent * 10 <= sent * 6 + 40000);
}

/* The class is promised more, less, and nothing; what is impossible changes nothing. */
TEST(a_promise_changes)
{
	u32 leaf;

	begin_senders();
	for (u32 i = 0; i < 2; i++)
		senders[i] = (struct sender){.leaf = class_below(AN_ROOT_LEAF, 100), .size = 1000};
	leaf = senders[0].leaf;
	run_senders(100 * MS);
	CHECK_EQ(counts(leaf)->promised, 0);
	CHECK_EQ(an_packets_promise(&q, leaf, 10000, 10 * MS, now_ns), 0); /* its packets wait */
	run_senders(100 * MS);
	CHECK(counts(leaf)->promised >= 90000);
	CHECK_EQ(an_packets_promise(&q, leaf, 12501, 10 * MS, now_ns), -1);
	CHECK_EQ(an_packets_promise(&q, leaf, 1000, 0, now_ns), -1);
	CHECK_EQ(an_packets_promise(&q, leaf, 5000, 10 * MS, now_ns), 0);
	counts(leaf)->promised = 0;
	run_senders(1000 * MS);
	CHECK(counts(leaf)->promised >= 490000 && counts(leaf)->promised <= 520000);
	CHECK_EQ(an_packets_promise(&q, leaf, 0, 0, now_ns), 0);
	CHECK_EQ(an_packets_promise(&q, leaf, 0, 0, now_ns), 0);
	counts(leaf)->promised = 0;
	run_senders(100 * MS);
	CHECK_EQ(counts(leaf)->promised, 0);
}

/* A link of no known rate promises nothing. */
TEST(a_promise_needs_a_rate)
{
	begin_packets(0, 100000);
	CHECK_EQ(an_packets_promise(&q, class_below(AN_ROOT_LEAF, 100), 1000, 10 * MS, now_ns), -1);
}

/* The contract goes with its class: one that comes in its place has none. */
TEST(a_promise_ends_with_its_class)
{
	u32 leaf;

	begin_packets(TEN_MBIT, 100000);
	leaf = class_below(AN_ROOT_LEAF, 100);
	CHECK_EQ(an_packets_promise(&q, leaf, 1000, 10 * MS, now_ns), 0);
	CHECK_EQ(an_packets_class_remove(&q, leaf), 0);
	CHECK_EQ(q.contracts.set.count, 0);
	CHECK_EQ(class_below(AN_ROOT_LEAF, 100), leaf);
	arrive(leaf, 1, 1000);
	sending(AN_SENT);
	CHECK_EQ(counts(leaf)->promised, 0);
}

/* A class whose packets are dropped for want of room sleeps, and wakes with the next. */
TEST(a_promised_class_may_lose_all)
{
	u32 leaf;

	begin_packets(TEN_MBIT, 100000);
	leaf = class_below(AN_ROOT_LEAF, 100);
	CHECK_EQ(an_packets_promise(&q, leaf, 5000, 10 * MS, now_ns), 0);
	arrive(leaf, 1, 1000);
	CHECK(an_packets_shed(&q, AN_ALL_HELD, now_ns));
	records[1].waits = false;
	sending(AN_WAITS);
}

/* What admission asks of promises of C_i bytes every T_i, as times C_i on the link: at each end of
 * a period before the busy period's there is room for what is due then, for one packet beyond each
 * budget, and for one that was begun. */
static bool there_is_room(u32 count)
{
	u64 beyond_ns = LARGEST_NS * (count + 1);

	for (u64 t = MS; t <= 400 * MS; t += MS) {
		u64 due_ns = beyond_ns;

		for (u32 i = 0; i < count; i++)
			due_ns += t / senders[i].period_ns * senders[i].bytes * AN_SECOND_NS /
				  TEN_MBIT;
		if (due_ns > t && t >= senders[0].period_ns)
			return false;
	}
	return true;
}

/* Promises that there is room for are kept, whatever they are, beside floods of others. */
TEST(promises_with_room_are_kept)
{
	u32 sets = 0, tried = 0;

	for (u32 run = 0; sets < 60; run++) {
		struct random r = {test_seed() + run};
		u32 count = 1 + random_below(&r, 4);

		CHECK(tried++ < 10000);
		test_scenario(test_seed() + run);
		begin_senders();
		for (u32 i = 0; i < MAX_SENDERS; i++) {
			struct sender *s = &senders[i];

			s->leaf = class_below(AN_ROOT_LEAF, 1 + random_below(&r, 1000));
			s->size = 100 + random_below(&r, LARGEST - 99);
			if (i >= count)
				continue;
			/* By period: the first is the shortest. */
			s->period_ns = (5 + random_below(&r, 20)) * MS;
			s->period_ns += i ? senders[i - 1].period_ns : 0;
			s->bytes = s->size * (1 + random_below(&r, 12));
			s->next_ns = now_ns + random_below(&r, 30) * MS;
		}
		if (!there_is_room(count))
			continue;
		sets++;
		for (u32 i = 0; i < count; i++)
			CHECK_EQ(an_packets_promise(&q, senders[i].leaf, senders[i].bytes,
						    senders[i].period_ns, now_ns),
				 0);
		run_senders(1000 * MS);
		for (u32 i = 0; i < count; i++)
			CHECK(senders[i].worst_ns <= senders[i].period_ns);
	}
	test_remark("a link's promises: %u sets of %u have room, all kept", sets, tried);
}
