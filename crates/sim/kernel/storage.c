/* SPDX-License-Identifier: GPL-2.0 */
/* What BPF gives a scheduler: spin locks, maps, storage of tasks and cgroups. */
#include "model.h"

#include <stdio.h>
#include <string.h>

void model_fault(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: the model of the kernel: not (%s), at %llu ns on CPU %u\n", file,
		line, what, (unsigned long long)m.now_ns, m.cpu);
	abort();
}

void *model_grow(void *array, u32 count, u32 *room, u64 size)
{
	if (count < *room)
		return array;
	*room = *room ? *room * 2 : 16;
	array = realloc(array, *room * size);
	model_assert(array);
	return array;
}

/* ---- locks: they do not nest, and nothing of the kernel's is called under them ---- */

void bpf_spin_lock(struct bpf_spin_lock *lock)
{
	kernel_call();
	while (lock->held_by) {
		kernel_waits();
	}
	lock->held_by = m.cpu + 1;
	this_rq()->under_lock = true;
}

void bpf_spin_unlock(struct bpf_spin_lock *lock)
{
	model_assert(this_rq()->under_lock);
	model_assert(lock->held_by == m.cpu + 1);
	lock->held_by = 0;
	this_rq()->under_lock = false;
	kernel_call();
}

void bpf_rcu_read_lock(void)
{
}

void bpf_rcu_read_unlock(void)
{
}

/* ---- storage of one task, or one cgroup ---- */

void *model_storage(struct local_storage *of, const void *map, u64 size, u64 flags)
{
	kernel_call();
	while (of->map && of->map != map && of->next)
		of = of->next;
	if (of->map && of->map != map) {
		if (!(flags & BPF_LOCAL_STORAGE_GET_F_CREATE))
			return NULL;
		of = of->next = calloc(1, sizeof(*of));
		model_assert(of);
	}
	if (!of->value && flags & BPF_LOCAL_STORAGE_GET_F_CREATE) {
		of->map = map;
		of->value = calloc(1, size);
		model_assert(of->value);
	}
	m.looks += of->value && map == m.shared;
	return of->value;
}

void model_storage_free(struct local_storage *of)
{
	struct local_storage *next = of->next;

	free(of->value);
	*of = (struct local_storage){};
	while (next) {
		struct local_storage *gone = next;

		next = gone->next;
		free(gone->value);
		free(gone);
	}
}

/* ---- maps: arrays, and hashes that forget what was used least lately ---- */

#define MAPS_MAX 8
#define KEY_MAX 16

struct entry {
	u8 key[KEY_MAX];
	u64 used;
	u32 next; /* of those with the same hash: index + 1 */
	u8 *value;
};

static struct map {
	const void *definition;
	u32 type, entries, key_size, value_size;
	u8 *array;
	struct entry *entry;
	u32 *bucket; /* index + 1 of its first */
	u32 count;
	u32 gone; /* index + 1 of the first that was deleted */
	u64 uses;
} maps[MAPS_MAX];

static struct map *map_of(const void *definition, u32 type, u32 entries, u32 key_size,
			  u32 value_size)
{
	struct map *map = maps;

	while (map < maps + MAPS_MAX && map->definition && map->definition != definition)
		map++;
	model_assert(map < maps + MAPS_MAX);
	if (map->definition)
		return map;
	model_assert(key_size <= KEY_MAX);
	*map = (struct map){.definition = definition,
			    .type = type,
			    .entries = entries,
			    .key_size = key_size,
			    .value_size = value_size};
	if (type == BPF_MAP_TYPE_ARRAY) {
		map->array = calloc(entries, value_size);
		model_assert(map->array);
	} else {
		model_assert(type == BPF_MAP_TYPE_LRU_HASH || type == BPF_MAP_TYPE_HASH);
		map->entry = calloc(entries, sizeof(*map->entry));
		map->bucket = calloc(entries, sizeof(*map->bucket));
		model_assert(map->entry && map->bucket);
	}
	return map;
}

static u32 *bucket_of(struct map *map, const void *key)
{
	u64 hash = 0xcbf29ce484222325ULL;

	for (u32 i = 0; i < map->key_size; i++)
		hash = (hash ^ ((const u8 *)key)[i]) * 0x100000001b3ULL;
	return &map->bucket[hash % map->entries];
}

static struct entry *entry_find(struct map *map, const void *key)
{
	u32 at = *bucket_of(map, key);

	while (at && memcmp(map->entry[at - 1].key, key, map->key_size))
		at = map->entry[at - 1].next;
	return at ? &map->entry[at - 1] : NULL;
}

static void entry_unlink(struct map *map, struct entry *e)
{
	u32 *at = bucket_of(map, e->key);

	while (&map->entry[*at - 1] != e)
		at = &map->entry[*at - 1].next;
	*at = e->next;
}

/* The entry for a new key: one that was deleted, or the one that was used least lately, if all are
 * in use. */
static struct entry *entry_new(struct map *map, const void *key)
{
	u32 *at, gone = map->gone;
	struct entry *e = gone ? &map->entry[gone - 1] : NULL;

	if (e) {
		map->gone = e->next;
	} else if (map->count < map->entries) {
		e = &map->entry[map->count++];
	} else if (map->type == BPF_MAP_TYPE_HASH) {
		return NULL;
	} else {
		e = map->entry;
		for (u32 i = 1; i < map->entries; i++)
			if (map->entry[i].used < e->used)
				e = &map->entry[i];
		entry_unlink(map, e);
	}
	memcpy(e->key, key, map->key_size);
	at = bucket_of(map, key);
	e->next = *at;
	*at = (u32)(e - map->entry) + 1;
	if (!e->value)
		e->value = calloc(1, map->value_size);
	model_assert(e->value);
	return e;
}

void *model_map(const void *definition, u32 type, u32 entries, u32 key_size, u32 value_size,
		const void *key, bool create)
{
	struct map *map = map_of(definition, type, entries, key_size, value_size);
	struct entry *e;
	u32 index;

	/* A map that holds the locks themselves is asked for one while none is held. */
	kernel_call();
	if (type == BPF_MAP_TYPE_ARRAY) {
		memcpy(&index, key, sizeof(index));
		return index < entries ? map->array + (u64)index * value_size : NULL;
	}
	e = entry_find(map, key);
	if (!e && create)
		e = entry_new(map, key);
	if (!e)
		return NULL;
	e->used = ++map->uses;
	return e->value;
}

int model_map_delete(const void *definition, const void *key)
{
	struct map *map = maps;
	struct entry *e;

	kernel_call();
	while (map < maps + MAPS_MAX && map->definition && map->definition != definition)
		map++;
	e = map < maps + MAPS_MAX && map->entry ? entry_find(map, key) : NULL;
	if (!e)
		return -2; /* ENOENT */
	entry_unlink(map, e);
	e->next = map->gone;
	map->gone = (u32)(e - map->entry) + 1;
	return 0;
}

static void forgets(struct local_storage *of)
{
	free(of->value);
	*of = (struct local_storage){0};
}

/* The maps are gone, with all that was in them. */
void storage_resets(void)
{
	for (struct map *map = maps; map < maps + MAPS_MAX && map->definition; map++) {
		for (u32 at = 0; at < map->count; at++)
			free(map->entry[at].value);
		free(map->array);
		free(map->entry);
		free(map->bucket);
		*map = (struct map){0};
	}
	for (u32 task = 0; task < m.task_count; task++)
		forgets(&m.tasks[task]->storage);
	for (u32 cgroup = 0; cgroup < m.cgroup_count; cgroup++)
		forgets(&m.cgroups[cgroup]->storage);
}

/* The key of a value in an array. */
u32 model_map_key(const void *definition, const void *value)
{
	struct map *map = maps;

	while (map < maps + MAPS_MAX && map->definition != definition)
		map++;
	model_assert(map < maps + MAPS_MAX && map->array);
	return (u32)(((const u8 *)value - map->array) / map->value_size);
}

long bpf_probe_read_kernel_str(void *to, u32 size, const void *from)
{
	return snprintf(to, size, "%s", from ? (const char *)from : "");
}
