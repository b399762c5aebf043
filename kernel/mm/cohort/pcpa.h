/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page-cache-preferred area: what the files of the scheme share.
 *
 *	pcpa_area.c	its frames: who has which
 *	pcpa_frames.c	making it, and changing its size
 *	pcpa_client.c	who gets pages: page cache, clients, loans; the timer
 *	pcpa_reclaim.c	quick reclaim: what to drop
 *	pcpa_drop.c	dropping it
 *	pcpa_trail.c	what of it is read again
 *	pcpa_contig.c	contiguous pieces
 *	pcpa_tidy.c	moving pages out and in, in the background
 *	pcpa_heap.c	the dma-buf heaps
 *	pcpa_sysfs.c	/sys/kernel/mm/cohort/pcpa/
 *
 * Locks
 *	cohort_pcpa_mutex	resizing, and one contiguous piece at a time; sleeps
 *	cohort_area.lock	the maps; a leaf, interrupts off, any context but NMI,
 *				never under a zone, pcp or lru lock
 */
#ifndef _MM_COHORT_PCPA_H
#define _MM_COHORT_PCPA_H

#include <linux/atomic.h>
#include <linux/cohort.h>
#include <linux/kobject.h>
#include <linux/migrate_mode.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>

#include "arith_pcpa.h"

/* The longest that the timer may be set to. */
#define COHORT_TIMER_MAX_MS	60000

/* Milliseconds after which a contiguous piece fails rather than being waited for. */
#define COHORT_CONTIG_MS	2000

/* Free pages that pulling leaves to readers; reclaim need not add to them. */
#define COHORT_AREA_KEEP	512UL

/**
 * struct cohort_area - the frames of the area
 * @lock: protects all below but @base, @zone and @nid, which never change
 * @base: first frame, aligned to a pageblock
 * @nr: frames it reaches over; shrinks with the size
 * @zone: of all of them
 * @nid: its node
 * @dead: another area has taken its place, and its frames
 * @map: free pages
 * @own: frames that are the area's; others were given back
 * @client: pages that clients have, or that wait in a window for one
 * @lent: pages that anybody has who can be moved away, or who writes to a file
 * @nr_own: number of bits in @own
 * @nr_client: of @client
 * @nr_lent: of @lent
 * @hold_start: first page of the window that is being emptied for one piece
 * @hold_end: one past its last; equal if there is none
 * @held: pages of the window that are free
 * @nr_held: how many
 * @mem: what the maps are made of
 *
 * own = free + client + lent + cache; a held page is a client's.  A free page
 * is parked as in a block: refcount 0, through free_pages_prepare(), never
 * PageBuddy.
 */
struct cohort_area {
	spinlock_t lock;
	unsigned long base;
	unsigned long nr;
	struct zone *zone;
	int nid;
	bool dead;
	struct cohort_area_map map;
	unsigned long *own;
	unsigned long *client;
	unsigned long *lent;
	unsigned long nr_own;
	unsigned long nr_client;
	unsigned long nr_lent;
	unsigned long hold_start;
	unsigned long hold_end;
	unsigned long *held;
	unsigned long nr_held;
	void *mem;
};

/**
 * struct cohort_pcpa_sizes - a look at the area, in pages
 * @base: its first frame
 * @size: what was asked for
 * @free: nobody has them
 * @cache: page cache
 * @client: entitled clients
 * @lent: others, while nobody else needed them
 * @other: not the area's at present
 */
struct cohort_pcpa_sizes {
	unsigned long base;
	unsigned long size;
	unsigned long free;
	unsigned long cache;
	unsigned long client;
	unsigned long lent;
	unsigned long other;
};

/* Why a page stands in the way of a contiguous piece. */
enum cohort_busy {
	COHORT_BUSY_NONE,
	COHORT_BUSY_PINNED,
	COHORT_BUSY_WRITEBACK,
	COHORT_BUSY_DIRTY,
	COHORT_BUSY_LOCKED,
	COHORT_BUSY_UNEVICTABLE,
	COHORT_BUSY_PRIVATE,
	COHORT_BUSY_SHARED,
	COHORT_BUSY_ANON,
	COHORT_BUSY_OFF_LRU,
	COHORT_BUSY_REFERENCED,
	COHORT_NR_BUSY,
};

/**
 * enum cohort_use - what a page of the area is taken for
 * @COHORT_USE_CACHE: a clean page of a file
 * @COHORT_USE_LENT: a movable page of anybody, while memory is short
 * @COHORT_USE_CLIENT: an entitled client
 */
enum cohort_use {
	COHORT_USE_CACHE,
	COHORT_USE_LENT,
	COHORT_USE_CLIENT,
};

/* pcpa_area.c */
extern struct cohort_area __rcu *cohort_area;
struct cohort_area *cohort_area_lock(unsigned long *flags);
void cohort_area_unlock(struct cohort_area *area, unsigned long flags);
void cohort_area_mark(struct cohort_area *area, unsigned long i, unsigned long n,
		      enum cohort_use use);
struct page *cohort_area_take(unsigned int order, enum cohort_use use,
			      const struct alloc_context *ac);
bool cohort_area_prep(struct page *page, unsigned int order, gfp_t gfp,
		      unsigned int alloc_flags);
void cohort_area_park(const unsigned long *pfn, unsigned int nr);
void cohort_area_settle(unsigned long pfn);
void cohort_area_disown(unsigned long start, unsigned long end);
unsigned long cohort_area_give_free(void);
void cohort_pcpa_sizes(struct cohort_pcpa_sizes *sizes);
bool cohort_area_hold(unsigned long start, unsigned long nr);
unsigned long cohort_area_held(void);
bool cohort_area_unhold(bool keep);

#ifdef CONFIG_COHORT_DEBUG
void cohort_area_check(struct cohort_area *area);
#else
static inline void cohort_area_check(struct cohort_area *area) { }
#endif

/* pcpa_frames.c */
extern struct mutex cohort_pcpa_mutex;
unsigned long cohort_frames_find(int nid, unsigned long nr, unsigned long base);
int cohort_pcpa_resize(u64 size, u64 base);
void cohort_area_fetch(void);

/* pcpa_client.c */
extern int cohort_pcpa_node;
extern unsigned int cohort_pcpa_min_order;
extern unsigned int cohort_pcpa_timer_ms;
enum cohort_pcpa_state cohort_pcpa_state(void);
bool cohort_pcpa_spare(int nid, unsigned long pages);
void cohort_pcpa_want(void);
void cohort_pcpa_got(unsigned long pages);
struct page *cohort_pcpa_piece(gfp_t gfp, unsigned int order);

/* pcpa_reclaim.c */
extern atomic_long_t cohort_quick_ns;
int cohort_reclaim_init(void);
void cohort_area_drop(unsigned long base, unsigned long start, unsigned long end);
unsigned long cohort_quick_reclaim(unsigned long want, unsigned int order);
void cohort_pcpa_announce(unsigned long pages);

/* Folios dropped together: one hold of the LRU's lock. */
#define COHORT_BATCH	64U

/**
 * struct cohort_batch - pages that are dropped together
 * @folio: a reference to each, locked
 * @nr: how many
 */
struct cohort_batch {
	struct folio *folio[COHORT_BATCH];
	unsigned int nr;
};

/* How often pages may be mapped that a round takes. */
enum cohort_round {
	COHORT_ROUND_UNMAPPED,
	COHORT_ROUND_ONE,
	COHORT_ROUND_SHARED,
};

/* pcpa_drop.c */
enum cohort_busy cohort_busy_why(struct folio *folio, bool shared);
void cohort_batch_add(struct cohort_batch *batch, struct page *page,
		      enum cohort_round round);
unsigned int cohort_batch_drop(struct cohort_batch *batch);
unsigned int cohort_batch_list(struct cohort_batch *batch, struct list_head *list);
unsigned int cohort_list_drop(struct list_head *list);

/* pcpa_trail.c */
int cohort_trail_resize(unsigned long pages);
void cohort_trail_note(const struct address_space *mapping, pgoff_t index);

/* pcpa_contig.c */
extern atomic_long_t cohort_busy_count[COHORT_NR_BUSY];
extern atomic_long_t cohort_contig_ns_max;
extern const char *const cohort_busy_names[COHORT_NR_BUSY];
struct page *cohort_pcpa_contig(unsigned long nr, gfp_t gfp, int *err);

/* pcpa_tidy.c */
unsigned int cohort_move_out(struct list_head *list, enum migrate_mode mode);
void cohort_pcpa_tidy_soon(void);
void cohort_pcpa_tidy_for_client(void);

/* pcpa_sysfs.c */
#ifdef CONFIG_COHORT_PCPA
unsigned long cohort_pcpa_free_pages(void);
struct page *cohort_pcpa_heap_page(gfp_t gfp, unsigned int order);
int cohort_pcpa_sysfs_init(struct kobject *parent);
int cohort_pcpa_init(void);
#else
static inline unsigned long cohort_pcpa_free_pages(void)
{
	return 0;
}

static inline struct page *cohort_pcpa_heap_page(gfp_t gfp, unsigned int order)
{
	return NULL;
}

static inline int cohort_pcpa_sysfs_init(struct kobject *parent)
{
	return 0;
}

static inline int cohort_pcpa_init(void)
{
	return 0;
}
#endif

#endif /* _MM_COHORT_PCPA_H */
