/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cohort's own structures.
 *
 *	block	2^order aligned frames that one owner has; a table maps a frame
 *		to its block, or to nothing
 *	room	the blocks of one domain in one zone
 *	domain	rooms whose pages have one lifetime
 *	magazine	a few single pages of each owner at hand on a CPU
 *
 * A free page of a block is an ordinary free page of the buddy allocator:
 * PageBuddy, merged with its buddies up to the block's order, counted in
 * NR_FREE_PAGES.  It is linked on a list of its block instead of the zone's,
 * left out of free_area.nr_free, and counted in zone->cohort_soft.  A page in
 * a magazine is in the state of one on a per-CPU list.
 *
 * A fixed block is kept: it stays its owner's when all of it is free, and only
 * its keeper takes pages of it.  Its free pages are counted in
 * zone->cohort_reserved instead.
 *
 * Ownership steers, it does not withhold.  The owner is served from its blocks
 * first; the watermarks do not count pages of blocks; what the ordinary free
 * pages cannot serve breaches a block before it reclaims by itself.
 *
 * Locks
 *	cohort_mutex		switching schemes on and off; sleeps; inside the area's
 *				cohort_size_mutex
 *	cohort_table_mutex	making spans of the table; sleeps; inside cohort_mutex
 *	cohort_domains_lock	the list of domains; a leaf, interrupts off
 *	cohort_magazine.lock	one CPU's magazine of one zone; only tried from
 *				allocations and frees, as they may interrupt
 *				the holder
 *	zone->lock		everything else: table, blocks, rooms
 *
 * magazine.lock is outside zone->lock.  Neither is held across an allocation,
 * page_owner or a wakeup.
 *
 * Life times: table entries, fixed blocks among them, are never freed.  A domain, with its rooms, is
 * freed by RCU after its last block is gone.  block.id may be read without a
 * lock by the holder of a page: "no owner" stays true as long as the page is
 * in use, since a block is acquired only while it is wholly free.
 */
#ifndef _MM_COHORT_COHORT_H
#define _MM_COHORT_COHORT_H

#include <linux/cohort.h>
#include <linux/list.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "lib/arith.h"

/* The list of blocks that compaction is emptying; take() never looks there, a breach last. */
#define COHORT_BUSY	COHORT_BUCKETS

/* A page that cannot move now (locked, in a journal) may soon. */
#define COHORT_RETRY	(HZ / 2)

/* How much longer at most a room rests whose pages again and again cannot move. */
#define COHORT_REST_MAX	6

/*
 * Pages of an area of vmalloc that is like the kernel's single pages, not like the
 * memory of drivers: the stack of a thread is freed when no neighbour is.
 */
#define COHORT_SMALL_AREA	16U

/* Blocks looked at to find the one that is cheapest to empty. */
#define COHORT_CANDIDATES	8

/* Regions one round of reclaim may take; the next round takes more. */
#define COHORT_SWEEPS	8

/* Orders by which free memory should exceed a set: kcompactd works ahead. */
#define COHORT_AHEAD		2

/* Pages that go between a block and a magazine under one hold of zone->lock: 128 KiB. */
#define COHORT_ROUND		MAX(SZ_128K >> PAGE_SHIFT, COHORT_SET_PAGES)

/* The room of a magazine: each owner's pages, and owners. */
#define COHORT_ROUNDS		MAX(SZ_256K >> PAGE_SHIFT, COHORT_ROUND)
#define COHORT_SLOTS		16U

/* Largest order that breaches a block: what the kernel cannot do without. */
#define COHORT_BREACH_ORDER	PAGE_ALLOC_COSTLY_ORDER

/**
 * enum cohort_kind - which lifetime the pages of a domain share
 * @COHORT_PROCESS: one process; freed when it dies
 * @COHORT_SHARED: persistent processes, never killed
 * @COHORT_SVC: services, killed rarely
 * @COHORT_SMALL: the first pages of every process, half a region each: a
 *	process that never grows beyond would waste most of a region
 * @COHORT_CACHE: page cache of one node, freed by whole-region reclaim
 * @COHORT_HOT: page cache that survived a sweep: likely to stay
 * @COHORT_METADATA: metadata of file systems: page cache of block devices; a journal
 *	pins them for seconds, so they are moved, never dropped by region
 * @COHORT_VMALLOC: unmovable pages taken one by one: vmalloc, GPU
 * @COHORT_KERNEL: unmovable pages no caller hands a domain: slab, also what can be
 *	shrunk, page tables, pipes; and small areas of vmalloc; those of one node
 * @COHORT_ZSPAGE: compressed memory: pages of zsmalloc, which zram swaps to
 * @COHORT_NR_KINDS: how many there are
 * @COHORT_KEPT: no lifetime: fixed blocks, whatever their keeper puts there
 */
enum cohort_kind {
	COHORT_PROCESS,
	COHORT_SHARED,
	COHORT_SVC,
	COHORT_SMALL,
	COHORT_CACHE,
	COHORT_HOT,
	COHORT_METADATA,
	COHORT_VMALLOC,
	COHORT_KERNEL,
	COHORT_ZSPAGE,
	COHORT_NR_KINDS,
	COHORT_KEPT = COHORT_NR_KINDS,
};

struct cohort_room;

/**
 * struct cohort_block - one slot of the frame table
 * @room: owner; NULL if there is none
 * @id: of the owner's domain, 0 if there is none; read without the lock
 * @order: of the frames it has, which for a remnant are fewer than its slot's
 * @bucket: the list it is on: cohort_bucket() of @nr_free, or COHORT_BUSY
 * @nr_free: pages on @free
 * @pfn: first frame it has, a multiple of 1 << @order
 * @retry: jiffies before which emptying it is not tried again
 * @node: on @room's list number @bucket
 * @free: its free pages, by order below @order; of a fixed block up to it
 *
 * nr_free == sum over o of length(free[o]) << o.  While @room is set, each page
 * is on @free, in use, in a magazine, or on its way between these; and
 * nr_free < 1 << order: a block that is wholly free loses its owner at once, if it
 * is not fixed.  @bucket may lag behind @nr_free after pages were taken by strangers;
 * fixed blocks are in none but 0.
 */
struct cohort_block {
	struct cohort_room *room;
	unsigned int id;
	unsigned char order;
	unsigned char bucket;
	unsigned int nr_free;
	unsigned long pfn;
	unsigned long retry;
	struct list_head node;
	struct list_head free[];
};

/**
 * struct cohort_room - blocks of a domain in one zone
 * @dom: the domain
 * @zone: the zone, whose lock protects all below
 * @nr_blocks: blocks on all lists
 * @nr_free: sum of their nr_free
 * @nr_whole: free pieces of the order of a block: fixed ones that are wholly free
 * @nonempty: bit b set if and only if list[b] is not empty, b < COHORT_BUSY
 * @list: blocks by bucket, and the busy ones
 * @young: block that was acquired last; what empties blocks spares it
 * @breach: on the zone's list of rooms of this kind while @nr_free is not 0
 * @closed: takes no blocks any more
 * @retry: jiffies before which packing it is not tried again
 * @fails: times in a row that packing it was in vain
 */
struct cohort_room {
	struct cohort_domain *dom;
	struct zone *zone;
	unsigned int nr_blocks;
	unsigned long nr_free;
	unsigned long nr_whole;
	unsigned long nonempty;
	struct list_head list[COHORT_BUCKETS + 1];
	struct cohort_block *young;
	struct list_head breach;
	bool closed;
	unsigned long retry;
	unsigned int fails;
};

/**
 * struct cohort_rounds - pages of one owner in a magazine
 * @id: of the owner's domain
 * @nr: how many
 * @idle: not used since the magazine was aged
 * @page: the pages; the last one is the next to be taken
 */
struct cohort_rounds {
	unsigned int id;
	unsigned short nr;
	bool idle;
	struct page *page[COHORT_ROUNDS];
};

/**
 * struct cohort_magazine - what a CPU has at hand of a zone's blocks
 * @lock: see above
 * @slot: owners; domains that live as long as the system have one each
 */
struct cohort_magazine {
	spinlock_t lock;
	struct cohort_rounds slot[COHORT_SLOTS];
};

/**
 * struct cohort_zone - Cohort's part of a zone
 * @rooms: rooms with free pages, by kind
 * @pieces: free pieces of blocks, by order, those of fixed ones apart
 * @kept_pieces: those of fixed blocks
 * @taint: block that pages which cannot be moved were let into last
 * @shown: what the statistic says of zone->cohort_soft
 * @shown_reserved: the same of zone->cohort_reserved
 * @told: jiffies, when kswapd was last told that blocks are few, or with cpb kcompactd that
 *	larger pieces are
 * @chunks: pieces of a block that is being given up; for an array on the stack KMSAN would
 *	allocate memory under the lock
 * @magazine: of each CPU
 */
struct cohort_zone {
	struct list_head rooms[COHORT_KEPT + 1];
	unsigned long pieces[COHORT_MAX_ORDER + 1];
	unsigned long kept_pieces[COHORT_MAX_ORDER + 1];
	struct cohort_block *taint;
	unsigned long shown;
	unsigned long shown_reserved;
	unsigned long told;
	struct list_head chunks[COHORT_MAX_ORDER + 1];
	struct cohort_magazine __percpu *magazine;
};

/**
 * struct cohort_domain - blocks with one lifetime
 * @kind: which lifetime
 * @class: of a process domain: what the process is now
 * @id: never 0; the kind's number for a domain that lives as long as the system
 * @nr_first: of a process domain: pages it was given from the small domain;
 *	racy, threads may lose a count
 * @ref: the mm (or the scheme), and each queued work
 * @work: compaction
 * @rest: jiffies before which it does not run again
 * @all: on cohort_domains, RCU
 * @rcu: frees the domain
 * @room: by node and zone; a process's are made when the first block comes
 */
struct cohort_domain {
	enum cohort_kind kind;
	enum cohort_class class;
	unsigned int id;
	unsigned int nr_first;
	refcount_t ref;
	struct delayed_work work;
	unsigned long rest;
	struct list_head all;
	struct rcu_head rcu;
	struct cohort_room *room[];
};

/**
 * struct cohort_request - what a page is wanted for
 * @dom: domain that should own it
 * @gfp: flags
 * @alloc_flags: ALLOC_* of the page allocator
 * @ac: zones and nodes
 */
struct cohort_request {
	struct cohort_domain *dom;
	gfp_t gfp;
	unsigned int alloc_flags;
	const struct alloc_context *ac;
};

/**
 * struct cohort_scheme - a scheme that takes blocks, all of one order
 * @name: as users call it
 * @key: on while it takes blocks
 * @order: order of a block
 * @packed: whole blocks are kept ready for it, by packing the others
 * @init: makes its domains, or finds them made
 * @refill: a block for a room; fills @page with single pages, at most @want,
 *	and returns how many.  Any context, no locks
 * @room: makes room for a request that may wait; true if it is worth looking
 *	again.  Optional
 * @hole: a free page of another domain where no block is to be had.  Optional
 * @drain: what it keeps for a CPU goes back.  Optional
 */
struct cohort_scheme {
	const char *name;
	struct static_key_false *key;
	const unsigned int *order;
	bool packed;
	int (*init)(void);
	unsigned int (*refill)(const struct cohort_request *rq, struct cohort_room *room,
			       struct page **page, unsigned int want);
	bool (*room)(const struct cohort_request *rq);
	struct page *(*hole)(const struct cohort_request *rq);
	void (*drain)(unsigned int cpu, struct zone *zone);
};

/**
 * struct cohort_keeper - what fixed blocks are for
 * @freed: frames of a block are free again; under zone->lock
 * @left: a block has lost its owner; under zone->lock
 * @rests: may a page that is freed wait in a magazine?  Without a lock
 */
struct cohort_keeper {
	void (*freed)(struct cohort_block *blk, unsigned long pfn, unsigned int order);
	void (*left)(struct cohort_block *blk);
	bool (*rests)(const struct cohort_block *blk, unsigned long pfn);
};

/* core/fixed.c */
extern const struct cohort_keeper *cohort_keeper;
extern struct cohort_domain cohort_kept;
int cohort_keeper_on(const struct cohort_keeper *keeper);
void cohort_keeper_off(struct zone *zone);
int cohort_fixed_make(unsigned long start, unsigned long end, size_t head);
void cohort_fixed_enter(struct cohort_room *room, unsigned long pfn);
void cohort_fixed_leave(unsigned long start, unsigned long end);
void cohort_fixed_drain(struct zone *zone);

/* core/scheme.c */
extern struct mutex cohort_mutex;
extern const struct cohort_scheme *cohort_scheme;	/* the one that is on, or was last */
extern bool cohort_taking;		/* false: no block is acquired any more */
extern unsigned int cohort_compact_delay_ms;
extern struct workqueue_struct *cohort_wq;		/* packs the machine, tidies the area */
extern struct workqueue_struct *cohort_process_wq;	/* what a process asks for by what it does */
int cohort_scheme_switch(const struct cohort_scheme *scheme, bool on);
void cohort_owner_switch(struct static_key_false *key, bool on);

/* core/debugfs.c */
void cohort_debugfs_init(void);

/* core/sysfs.c */
struct attribute_group;
extern struct kobject *cohort_kobj;
int cohort_sysfs_init(void);
int cohort_sysfs_add(const struct attribute_group *group);
ssize_t cohort_store_switch(const char *name, const char *buf, size_t len,
			    int (*turn)(bool on));
ssize_t cohort_store_kb(const char *name, const char *buf, size_t len,
			unsigned long *pages, unsigned long min, unsigned long max);
ssize_t cohort_store_uint(const char *name, const char *buf, size_t len,
			  unsigned int *value, unsigned int min, unsigned int max);
__printf(3, 4)
ssize_t cohort_store_refused(const char *name, const char *buf, const char *expected, ...);

#define COHORT_ATTR_RO(_group, _name)					\
	static struct kobj_attribute _group##_##_name##_attr =		\
		__ATTR(_name, 0444, _group##_##_name##_show, NULL)

/* What tells what some process does, or where memory is. */
#define COHORT_ATTR_ROOT(_group, _name)					\
	static struct kobj_attribute _group##_##_name##_attr =		\
		__ATTR(_name, 0400, _group##_##_name##_show, NULL)

#define COHORT_ATTR_RW(_group, _name)					\
	static struct kobj_attribute _group##_##_name##_attr =		\
		__ATTR(_name, 0644, _group##_##_name##_show, _group##_##_name##_store)

/* The file that shows and turns a switch behind a static key; most are called "enabled". */
#define COHORT_ATTR_KEY(_group, _name, _key, _turn)			\
static ssize_t cohort_##_group##_##_name##_show(struct kobject *kobj,	\
				     struct kobj_attribute *attr, char *buf) \
{									\
	return sysfs_emit(buf, "%d\n", static_key_enabled(&(_key)));	\
}									\
									\
static ssize_t cohort_##_group##_##_name##_store(struct kobject *kobj,	\
				      struct kobj_attribute *attr,	\
				      const char *buf, size_t len)	\
{									\
	return cohort_store_switch(#_group "/" #_name, buf, len, _turn);	\
}									\
COHORT_ATTR_RW(cohort_##_group, _name)

#define COHORT_ATTR_SWITCH(_scheme, _key, _turn)			\
	COHORT_ATTR_KEY(_scheme, enabled, _key, _turn)

#define COHORT_KB(pages)	((pages) << (PAGE_SHIFT - 10))

/* A guest has such memory, and has not accepted it from its host: it counts as free. */
static inline unsigned long cohort_zone_unaccepted(const struct zone *zone)
{
#ifdef CONFIG_UNACCEPTED_MEMORY
	return zone_page_state(zone, NR_UNACCEPTED);
#else
	return 0;
#endif
}

/* Is so much free that a block, or a set, may be taken? */
static inline bool cohort_mark_ok(struct zone *zone, unsigned long mark, int highest_zoneidx)
{
	return zone_watermark_ok(zone, 0, mark + cohort_zone_unaccepted(zone), highest_zoneidx, 0);
}

#include "core/table.h"

/* core/block.c: under zone->lock */
struct cohort_block *cohort_block_owned(unsigned long pfn);
void cohort_block_enter(struct cohort_room *room, struct cohort_block *blk,
			unsigned long pfn, unsigned int order);
void cohort_block_leave(struct cohort_block *blk);
void cohort_block_move(struct cohort_block *blk, unsigned int bucket);
void cohort_block_place(struct cohort_block *blk);
unsigned long cohort_block_dissolve(struct cohort_block *blk);
bool cohort_block_usable(const struct cohort_block *blk);
unsigned int cohort_block_take(struct cohort_block *blk, struct page **page,
			       unsigned int want);
struct page *cohort_block_piece(struct cohort_block *blk, unsigned int order);
void cohort_zone_show(struct zone *zone);

/* and without it */
void cohort_range_dissolve(unsigned long start_pfn, unsigned long end_pfn);

/* core/room.c */
struct cohort_room *cohort_room_of(struct cohort_domain *dom, struct zone *zone);
void cohort_room_init(struct cohort_room *room, struct cohort_domain *dom, struct zone *zone);
void cohort_pages_reverse(struct page **page, unsigned int nr);
unsigned int cohort_room_take(struct cohort_room *room, struct page **page,
			      unsigned int want);
unsigned int cohort_room_acquire(struct cohort_room *room, int highest_zoneidx,
				 unsigned long mark, struct page **page, unsigned int want);
struct cohort_block *cohort_room_fullest(struct cohort_room *room);
unsigned int cohort_room_more(struct cohort_domain *dom, gfp_t gfp, const struct page *like,
			      struct page **page, unsigned int nr);
struct page *cohort_domain_take_hole(struct cohort_domain *dom,
				     const struct cohort_request *rq);
void cohort_room_dissolve(struct cohort_room *room, bool close);
bool cohort_cpuset_allows(struct zone *zone, gfp_t gfp, unsigned int alloc_flags);
bool cohort_zone_kept(struct zone *zone, unsigned long owned, unsigned int alloc_flags,
		      const struct alloc_context *ac);
bool cohort_zone_allowed(struct zone *zone, gfp_t gfp, unsigned int alloc_flags,
			 const struct alloc_context *ac);
bool cohort_node_ok(const struct alloc_context *ac, int nid);
bool cohort_hand_out(struct page *page, unsigned int order, gfp_t gfp,
		     unsigned int alloc_flags, struct zone *preferred);

/* core/breach.c */
struct page *cohort_blocks_breach(gfp_t gfp, unsigned int order, unsigned int alloc_flags,
				  const struct alloc_context *ac);

/* core/magazine.c */
struct page *cohort_magazine_take(struct zone *zone, unsigned int id,
				  struct cohort_room *room);
unsigned int cohort_magazine_take_bulk(struct cohort_room *room, struct page **page,
				       unsigned int nr);
void cohort_magazine_fill(struct zone *zone, unsigned int id, struct page **page,
			  unsigned int nr);
void cohort_magazine_drain(struct zone *zone, unsigned int cpu, unsigned int id);
unsigned long cohort_magazine_nr(const struct zone *zone, unsigned int id);
bool cohort_owned_free(struct page *page, unsigned long pfn, unsigned int order);

/* Rooms a domain may have. */
static inline unsigned int cohort_nr_rooms(void)
{
	return nr_node_ids * MAX_NR_ZONES;
}

/* core/domain.c */
extern struct list_head cohort_domains;
struct cohort_domain *cohort_domain_create(enum cohort_kind kind, gfp_t gfp);
int cohort_domain_rooms(struct cohort_domain *dom);
void cohort_domain_put(struct cohort_domain *dom);
void cohort_domain_destroy(struct cohort_domain *dom);
void cohort_domain_drain(struct cohort_domain *dom);
void cohort_domain_dissolve(struct cohort_domain *dom);
void cohort_dissolve_all(void);
unsigned long cohort_domain_free(const struct cohort_domain *dom);
unsigned int cohort_domain_blocks(const struct cohort_domain *dom);
unsigned long cohort_free_in(enum cohort_kind kind);
unsigned long cohort_soft(void);

/* core/process.c */
struct cohort_domain *cohort_mm_domain(struct mm_struct *mm);
void cohort_class_note(struct task_struct *task);
struct task_struct *cohort_lock_process(struct task_struct *task);
void cohort_unlock_process(struct task_struct *alive);
bool cohort_borrows_mm(struct task_struct *task);
void cohort_each_process(void (*note)(struct task_struct *task));

/* core/compact.c */
struct cohort_block *cohort_pick_victim(struct cohort_room *room);
bool cohort_unpick(struct cohort_room *room, struct cohort_block *blk);
struct folio *cohort_get_single(struct page *page);
bool cohort_isolate_page(struct page *page, struct list_head *list);
unsigned int cohort_isolate_frames(unsigned long pfn, struct list_head *list);
unsigned int cohort_isolate(struct cohort_block *blk, struct list_head *list);
unsigned int cohort_evacuate(struct cohort_room *room, struct cohort_room *from,
			     struct list_head *list, bool may_wait);
unsigned int cohort_evacuate_unowned(struct zone *zone, unsigned long pfn, struct list_head *list);
bool cohort_compact_block(struct cohort_room *room, bool may_wait,
			  unsigned int *blocks, unsigned int *moved);
unsigned int cohort_room_relieve(struct cohort_room *room, unsigned int most, bool full);
unsigned int cohort_domain_compact(struct cohort_domain *dom, bool may_wait, unsigned int most);
void cohort_compact_queue(struct cohort_domain *dom, unsigned int delay_ms);
void cohort_compact_work(struct work_struct *work);

/* core/unowned.c */
unsigned int cohort_unowned_used(struct zone *zone, unsigned long pfn);
bool cohort_unowned_pack(struct zone *zone, unsigned long *next, unsigned long end);

/* How long a run may take that packs: other work waits for it, and so does suspend. */
#define COHORT_PACK_TIME	HZ

/* One part in so many of memory is kept ready as whole blocks. */
#define COHORT_HEADROOM_PART	64
#define COHORT_HEADROOM_OF_MEMORY	ULONG_MAX

/* core/pack.c */
extern unsigned long cohort_headroom;	/* pages of whole blocks kept ready, all nodes */
int cohort_pack_init(void);
unsigned long cohort_whole(struct zone *zone);
unsigned long cohort_zone_headroom(struct zone *zone);
/* Is this one of the last looks before a process is killed for the request? */
static inline bool cohort_before_kill(unsigned int alloc_flags)
{
	return (alloc_flags & COHORT_ALLOC_LAST) == COHORT_ALLOC_LAST;
}

/* Pageblocks of a zone that are isolated: hardly any zone has one. */
static inline unsigned long cohort_isolated_blocks(const struct zone *zone)
{
#ifdef CONFIG_MEMORY_ISOLATION
	return READ_ONCE(zone->nr_isolate_pageblock);
#else
	return 0;
#endif
}

bool cohort_blocks_short(struct zone *zone);
bool cohort_node_excess(int nid);
bool cohort_packing(void);
bool cohort_pack_one(int nid, int top);
int cohort_pack_look(int nid, int top, unsigned int *at);
void cohort_pack_wake(struct pglist_data *pgdat);
void cohort_pack_drain(void);

/**
 * struct cohort_packs - of packing before a kill in a node
 * @until: jiffies, up to which others wait for the task that is at it
 * @home: jiffies, when a block came home, or there was enough
 *
 * Written by the task that holds the node's bit in cohort_packs_busy.
 */
struct cohort_packs {
	unsigned long until, home;
};

extern struct cohort_packs cohort_packs[MAX_NUMNODES];
extern unsigned long cohort_packs_busy[BITS_TO_LONGS(MAX_NUMNODES)];

/*
 * host/page_alloc.h, inside mm/page_alloc.c.  Under zone->lock:
 */
struct page *cohort_buddy_rmqueue(struct zone *zone, unsigned int order, int mt,
				  unsigned int alloc_flags);
void cohort_buddy_expand(struct zone *zone, struct page *page, unsigned int low,
			 unsigned int high);
void cohort_buddy_split(struct zone *zone, struct page *page, unsigned int low,
			unsigned int high);
void cohort_buddy_merge(struct zone *zone, struct page *page, unsigned int order);
void cohort_buddy_relink(struct zone *zone, struct page *page, unsigned int order);
void cohort_buddy_rejoin(struct zone *zone, struct page *page, unsigned int order);
struct page *cohort_buddy_remnant(struct zone *zone, unsigned int order);
/* Without it: */
bool cohort_buddy_holds(struct zone *zone, unsigned long pfn, unsigned int want);
unsigned int cohort_buddy_pieces(struct zone *zone, unsigned long pfn, struct page **page,
				 unsigned int want);
void cohort_buddy_free(struct page *page, unsigned int order);
void cohort_buddy_give(struct page *page, unsigned int order);
bool cohort_free_prepare(struct page *page);
void cohort_buddy_free_bulk(struct zone *zone, struct page **page, unsigned int nr);
bool cohort_buddy_has(struct zone *zone, unsigned int order);
bool cohort_buddy_accept(struct zone *zone);
bool cohort_pcp_age(struct zone *zone);
bool cohort_prep_pages(struct page *page, unsigned int order, gfp_t gfp,
		       unsigned int alloc_flags, struct zone *preferred);
struct page *cohort_alloc_pages_noprof(gfp_t gfp, int nid, nodemask_t *nodemask,
				       struct cohort_domain *dom);

/* host/vmscan.h */
bool cohort_protect(bool low);
bool cohort_protected(struct folio *folio, bool low);

/* host/mempolicy.h */
struct folio *cohort_cache_alloc(struct cohort_domain *dom, gfp_t gfp);

/* vnode/vnode.c, called from there */
nodemask_t *cohort_vnode_nodes(const struct mm_struct *mm, bool any);

#ifdef CONFIG_COHORT_DEBUG
void cohort_check_room(struct cohort_room *room);
#else
static inline void cohort_check_room(struct cohort_room *room) { }
#endif

/* Does the task spread or bind its pages on purpose? */
static inline bool cohort_task_policy(void)
{
#ifdef CONFIG_NUMA
	return current->mempolicy;
#else
	return false;
#endif
}

/*
 * Are the per-CPU lists of a zone disabled, so that no page may wait beside them either?  A zone
 * whose last memory goes offline has none any more.
 */
static inline bool cohort_pcp_disabled(struct zone *zone)
{
	return !managed_zone(zone) || !READ_ONCE(raw_cpu_ptr(zone->per_cpu_pageset)->high_max);
}

/* Pages of the others can be moved or dropped. */
static inline bool cohort_kind_unmovable(enum cohort_kind kind)
{
	return kind == COHORT_VMALLOC || kind == COHORT_KERNEL;
}

static inline bool cohort_unmovable(const struct cohort_domain *dom)
{
	return cohort_kind_unmovable(dom->kind);
}

#endif /* _MM_COHORT_COHORT_H */
