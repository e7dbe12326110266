/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The class of each request of a disk that user space serves (crates/disk).
 *
 * A ublk server is told what is asked for, and not by whom. The kernel knows: a request is of the
 * cgroup that its first bio is charged to, which is its sender's, also if the page cache writes it
 * much later. This program sees each request as it is handed to the driver, before the server does,
 * and notes its cgroup under its tag, by which the server knows it; and all that are above it, with
 * the weights that they have of the CPU: 100 where the cpu controller is off. Requests of different
 * cgroups are not merged.
 */
#include "cgroups.h"

char _license[] SEC("license") = "GPL";

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cgroup_subsys_state___disk {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state___disk css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio {
	unsigned short bi_ioprio;
	struct blkcg_gq *bi_blkg;
};

struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	int tag;
	struct bio *bio;
};

#pragma clang attribute pop

#define AN_MAX_TAGS 1024 /* more than a server knows (MAX_TAGS of crates/disk/src/lib.rs) */

/* Classes inside one another; of those deeper down the upper ones count. */
#define AN_MAX_STEPS 16

struct an_step {
	u64 cgroup_id;
	u32 weight;
	u32 pad;
};

struct an_sender {
	u64 cgroup_id; /* 0: nobody; it is the kernel's own, such as a flush */
	u32 ioprio;
	u32 steps;
	struct an_step step[AN_MAX_STEPS]; /* from its class upwards, without the root */
};

/* By tag. User space reads it in its own memory. */
struct an_sender senders[AN_MAX_TAGS];

/* The disk, set by user space when there is one; nothing has the number 0. */
volatile u32 major;
volatile u32 first_minor;

static __always_inline void note_classes(struct an_sender *sender, u64 address)
{
	const struct cgroup *cgrp = cgroup_at(address);
	u32 steps = 0;

	an_while(cgrp->level > AN_MAX_STEPS)
		cgrp = cgroup_above(cgrp);
	an_while(steps < AN_MAX_STEPS && cgrp->level > 0) {
		struct an_step *step = &sender->step[an_bounded(steps, AN_MAX_STEPS)];

		step->cgroup_id = cgroup_id(cgrp);
		step->weight = cgroup_cpu_weight(cgrp);
		cgrp = cgroup_above(cgrp);
		steps = an_opaque(steps + 1);
	}
	sender->steps = steps;
}

SEC("tp_btf/block_rq_issue")
int issued(u64 *ctx)
{
	struct request *rq = (struct request *)ctx[0];
	struct gendisk *disk = rq->q->disk;
	struct an_sender *sender;
	u32 tag = rq->tag;
	struct bio *bio;

	if (!disk || (u32)disk->major != major || (u32)disk->first_minor != first_minor || !major)
		return 0;
	if (tag >= AN_MAX_TAGS)
		return 0;
	sender = &senders[tag];
	sender->cgroup_id = sender->ioprio = sender->steps = 0;
	bio = rq->bio;
	if (!bio)
		return 0;
	sender->ioprio = bio->bi_ioprio;
	if (bio->bi_blkg) {
		const struct cgroup *cgrp = bio->bi_blkg->blkcg->css.cgroup;

		sender->cgroup_id = cgrp->kn->id;
		note_classes(sender, cgroup_address(cgrp));
	}
	return 0;
}
