/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cohort's own structures.
 *
 *	block	2^order aligned pages taken from the buddy allocator for one
 *		domain; a flat table maps a frame number to its block
 *	domain	blocks whose pages have one lifetime
 *
 * A parked page is free but private to its domain: refcount 0, already
 * through free_pages_prepare(), not PageBuddy, one bit in its block's map.
 * It never holds metadata, so poisoning and debug_pagealloc stay in force.
 *
 * Locks
 *	cohort_mutex		switching schemes on and off; sleeps
 *	cohort_domains_lock	adding to and removing from the list of domains
 *	cohort_domain.lock	a domain's lists and the maps of its blocks
 *	zone->lock		taken alone, after domain.lock was dropped
 *
 * domains_lock and domain.lock are never held together, nor are the locks of
 * two domains.  Both are leaf locks for the rest of the kernel: taken with
 * interrupts off, in any context but NMI, never under a zone, pcp or lru
 * lock, never held across an allocation, page_owner or zone->lock.
 *
 * Life times: table entries are never freed.  A domain is freed by RCU after
 * its last block is gone; whoever reads block->dom without the lock does so
 * under rcu_read_lock() and looks again under the lock.
 */
#ifndef _MM_COHORT_COHORT_H
#define _MM_COHORT_COHORT_H

#include <linux/cohort.h>
#include <linux/list.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "arith.h"

/* The list of blocks that compaction is emptying; take() never looks there. */
#define COHORT_BUSY	COHORT_BUCKETS

/* A page that cannot move now (locked, in a journal) may soon. */
#define COHORT_RETRY	(HZ / 2)

/* Blocks worth of holes that pages of drivers may leave before they are filled. */
#define COHORT_SPARE_BLOCKS	8UL

/*
 * Holes the kernel's single pages may keep while memory is low: as many as slab has
 * that comes and goes, whatever the size of a region.
 */
#define COHORT_KERNEL_HOLES	(8UL * COHORT_BLOCK_PAGES)

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

/* Reservations of one process, and waits for the only one that make more. */
#define COHORT_SHARDS		4
#define COHORT_CROWD		32

/**
 * enum cohort_kind - which lifetime the pages of a domain share
 * @COHORT_PROCESS: one process; freed when it dies
 * @COHORT_SHARED: persistent processes, never killed
 * @COHORT_SVC: background services, killed rarely
 * @COHORT_SMALL: the first pages of every process, half a region each: a
 *	process that never grows beyond would waste most of a region
 * @COHORT_CACHE: page cache of one node, freed by whole-region reclaim
 * @COHORT_HOT: page cache that survived a sweep: likely to stay
 * @COHORT_BUFFER: block device pages, mostly file system metadata; a journal
 *	pins them for seconds, so they are moved, never dropped by region
 * @COHORT_VMALLOC: unmovable pages taken one by one: vmalloc, GPU
 * @COHORT_KERNEL: unmovable pages nobody hands a domain: slab, also what can be
 *	shrunk, page tables, pipes; and small areas of vmalloc; those of one node
 * @COHORT_ZSPAGE: compressed memory: pages of zsmalloc, which zram swaps to
 * @COHORT_CPB: no page in use: the contiguous page buffer of one CPU
 * @COHORT_NR_KINDS: how many there are
 */
enum cohort_kind {
	COHORT_PROCESS,
	COHORT_SHARED,
	COHORT_SVC,
	COHORT_SMALL,
	COHORT_CACHE,
	COHORT_HOT,
	COHORT_BUFFER,
	COHORT_VMALLOC,
	COHORT_KERNEL,
	COHORT_ZSPAGE,
	COHORT_CPB,
	COHORT_NR_KINDS,
};

/**
 * struct cohort_block - one slot of the frame table
 * @dom: owner; NULL while the buddy allocator owns the frames.  Changes under
 *	the lock of the domain that is or was the owner
 * @node: on @dom's list number @bucket
 * @map: parked pages; stable under @dom's lock
 * @bucket: the list it is on: cohort_bucket() of @map, or COHORT_BUSY
 * @order: of the frames it has, which for a remnant are fewer than its slot's
 * @first: the first of them, as an index in the slot
 * @pfn: first frame of the slot
 * @retry: jiffies before which emptying it is not tried again
 *
 * dom == NULL implies map.nr == 0.  While dom is set, every page the block has
 * is either parked or in use, none is PageBuddy, and 0 <= map.nr < 1 << order:
 * a block with all pages parked leaves its domain at once.  Only in a buffer
 * map.nr == 1 << order.
 */
struct cohort_block {
	struct cohort_domain *dom;
	struct list_head node;
	struct cohort_map map;
	unsigned char bucket;
	unsigned char order;
	unsigned char first;
	unsigned long pfn;
	unsigned long retry;
};

/**
 * struct cohort_set - frames on their way between a buffer and the free lists
 * @page: the first of them; off the free lists, refcount 0, in no block
 * @order: how many
 */
struct cohort_set {
	struct page *page;
	unsigned int order;
};

/**
 * struct cohort_domain - blocks with one lifetime
 * @lock: see above
 * @nr_blocks: blocks on all lists
 * @nr_parked: sum of map.nr over them
 * @nonempty: bit b set if and only if list[b] is not empty, b < COHORT_BUSY
 * @list: blocks by bucket, and the busy ones
 * @young: block being filled; the cache sweep spares it.  A set being filled
 *	may be on a list of fuller ones than it is
 * @kind: which lifetime
 * @class: of a process domain: what the process is now
 * @nr_first: of a process domain: pages it was given from the small domain;
 *	racy, threads may lose a count
 * @nr_waits: faults that found @lock taken; racy as well
 * @shard: of a process domain: more reservations, for threads that fault on
 *	several CPUs at once; set once, gone with the domain
 * @nid: only node to take blocks from, NUMA_NO_NODE for any
 * @ref: the mm (or the scheme), and each queued work
 * @work: compaction
 * @all: on cohort_domains, RCU
 * @rcu: frees the domain
 */
struct cohort_domain {
	spinlock_t lock;
	unsigned int nr_blocks;
	unsigned long nr_parked;
	unsigned long nonempty;
	struct list_head list[COHORT_BUCKETS + 1];
	struct cohort_block *young;
	enum cohort_kind kind;
	enum cohort_class class;
	unsigned int nr_first;
	unsigned int nr_waits;
	struct cohort_domain *shard[COHORT_SHARDS - 1];
	int nid;
	refcount_t ref;
	struct delayed_work work;
	struct list_head all;
	struct rcu_head rcu;
};

/* core.c */
extern struct mutex cohort_mutex;
extern bool cohort_taking;		/* false: no block is published any more */
extern unsigned int cohort_order;	/* of a block of the scheme that is on */
extern unsigned int cohort_region_order;	/* fixed at boot */
extern bool cohort_region_vmalloc;	/* single unmovable pages have a domain */
extern unsigned int cohort_cpb_order;	/* changes under cohort_mutex, while off */
extern unsigned long cohort_parked_max;	/* pages, all zones */
extern unsigned int cohort_compact_delay_ms;
extern struct workqueue_struct *cohort_wq;
int cohort_region_switch(bool on);
int cohort_cpb_switch(bool on);
int cohort_cpb_set_order(unsigned int order);
int cohort_sysfs_init(void);

/* block.c */
int cohort_blocks_init(unsigned int order);
struct cohort_block *cohort_block_of(unsigned long pfn);
bool cohort_block_publish(struct cohort_domain *dom, struct page *page,
			  unsigned int order);
void cohort_block_detach(struct cohort_domain *dom, struct cohort_block *blk,
			 struct cohort_map *map);
void cohort_block_move(struct cohort_domain *dom, struct cohort_block *blk,
		       unsigned int bucket);
void cohort_domain_fill(struct cohort_domain *dom, struct cohort_block *blk);
void cohort_block_count(struct cohort_domain *dom, struct cohort_block *blk,
			struct page *page, long delta);
unsigned long cohort_block_return(unsigned long pfn,
				  const struct cohort_map *map);
unsigned long cohort_block_stats(unsigned long nr[COHORT_NR_KINDS]);

/* First frame of the slot, which need not be one that the block has. */
static inline unsigned long cohort_block_pfn(const struct cohort_block *blk)
{
	return blk->pfn;
}

/* First page that the block has. */
static inline struct page *cohort_block_page(const struct cohort_block *blk)
{
	return pfn_to_page(blk->pfn + blk->first);
}

/* domain.c */
extern struct list_head cohort_domains;
struct cohort_domain *cohort_domain_create(enum cohort_kind kind, int nid,
					   gfp_t gfp);
void cohort_domain_put(struct cohort_domain *dom);
void cohort_domain_destroy(struct cohort_domain *dom);
unsigned long cohort_domain_dissolve(struct cohort_domain *dom, bool full);
void cohort_domain_trim(struct cohort_domain *dom, unsigned long keep);
struct page *cohort_domain_take(struct cohort_domain *dom,
				const struct alloc_context *ac);
bool cohort_zone_ok(const struct alloc_context *ac, struct page *page);
struct page *cohort_domain_take_hole(struct cohort_domain *dom,
				     const struct alloc_context *ac);
void cohort_dissolve_all(void);
unsigned long cohort_parked_in(enum cohort_kind kind);
unsigned long cohort_parked(void);
bool cohort_grow(struct cohort_domain *dom, struct zone *zone, int highest_zoneidx,
		 unsigned long mark);
unsigned long cohort_low_mark(const struct zone *zone);
bool cohort_zone_allowed(struct zone *zone, gfp_t gfp, unsigned int alloc_flags,
			 const struct alloc_context *ac);

/* compact.c */
struct cohort_block *cohort_pick_victim(struct cohort_domain *dom);
bool cohort_unpick(struct cohort_domain *dom, struct cohort_block *blk);
struct folio *cohort_get_single(struct page *page);
bool cohort_isolate_page(struct page *page, struct list_head *list);
unsigned int cohort_isolate(struct cohort_block *blk, struct list_head *list);
unsigned int cohort_evacuate(struct cohort_domain *dom, struct list_head *list,
			     bool may_wait);
void cohort_compact_low(void);
void cohort_compact_swapped(void);
unsigned int cohort_domain_compact(struct cohort_domain *dom, bool may_wait);
void cohort_compact_queue(struct cohort_domain *dom, unsigned int delay_ms);
void cohort_compact_work(struct work_struct *work);

/* region.c */
int cohort_region_init(void);
struct page *cohort_region_hole(struct cohort_domain *dom,
				const struct alloc_context *ac);
struct cohort_domain *cohort_cache_victims(int nid, struct cohort_block **blk,
					   struct list_head *victims,
					   struct list_head *survivors);
bool cohort_region_room(int nid);
bool cohort_cache_settle(struct cohort_domain *dom, struct cohort_block *blk,
			 struct list_head *survivors, unsigned int dropped);

/* cpb.c */
extern const char *const cohort_cpb_refills[2];	/* by cohort_cpb_remnants */
extern bool cohort_cpb_remnants;	/* refill prefers remnants to splitting */
extern unsigned long cohort_cpb_limit;	/* pages a CPU's buffer may hold */
int cohort_cpb_init(void);
bool cohort_cpb_put(struct page *page);
bool cohort_cpb_over(void);
bool cohort_cpb_refill(struct cohort_domain *dom, gfp_t gfp,
		       unsigned int alloc_flags, const struct alloc_context *ac);
struct cohort_domain *cohort_cpb_buffer(unsigned int cpu);
struct cohort_domain *cohort_cpb_shard(struct cohort_domain *dom);
void cohort_cpb_set_class(struct cohort_domain *dom, enum cohort_class class);
void cohort_cpb_exit(struct cohort_domain *dom);
int cohort_cpb_cpu_prepare(unsigned int cpu);
int cohort_cpb_cpu_dead(unsigned int cpu);

/* buffer.c */
void cohort_buffer_done(struct page *page, unsigned long nr, int order);
ssize_t cohort_buffer_read(unsigned int which, char *buf);

/* buddy.h, inside mm/page_alloc.c */
struct page *cohort_buddy_take(struct zone *zone, unsigned int order, int mt);
unsigned int cohort_buddy_take_sets(struct zone *zone, unsigned int order,
				    bool remnants, unsigned int want,
				    struct cohort_set *set);
void cohort_buddy_give_sets(struct zone *zone, const struct cohort_set *set,
			    unsigned int nr);
bool cohort_buddy_has(struct zone *zone, unsigned int order);
void cohort_buddy_give(struct page *page, unsigned int order);
void cohort_buddy_give_map(unsigned long pfn, const struct cohort_map *map);
bool cohort_prep_pages(struct page *page, unsigned int order, gfp_t gfp,
		       unsigned int alloc_flags, struct zone *preferred);
bool cohort_prep_page(struct page *page, gfp_t gfp, unsigned int alloc_flags,
		      struct zone *preferred);

#ifdef CONFIG_COHORT_DEBUG
void cohort_check_domain(struct cohort_domain *dom);
#else
static inline void cohort_check_domain(struct cohort_domain *dom) { }
#endif

/* Pages of the others can be moved or dropped. */
static inline bool cohort_unmovable(const struct cohort_domain *dom)
{
	return dom->kind == COHORT_VMALLOC || dom->kind == COHORT_KERNEL;
}

static inline unsigned int cohort_pages(void)
{
	return 1U << cohort_order;
}

/* sysfs.c */
ssize_t cohort_store_switch(const char *buf, size_t len, int (*turn)(bool on));
ssize_t cohort_store_uint(const char *buf, size_t len, unsigned int *value,
			  unsigned int min, unsigned int max);

#endif /* _MM_COHORT_COHORT_H */
