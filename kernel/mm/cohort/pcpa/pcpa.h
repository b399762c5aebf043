/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The page-cache-preferred area: what the files of the scheme share.
 *
 *	area.c	its frames and their users
 *	window.c	those that are kept for one contiguous piece
 *	frames.c	making it, and changing its size
 *	client.c	its users: page cache, clients, loans; the timer
 *	reclaim.c	quick reclaim: what to drop
 *	drop.c	dropping it
 *	trail.c	what of it is read again
 *	contig.c	contiguous pieces
 *	copies.c	frames kept for them, with copies of evicted pages meanwhile
 *	tidy.c	moving pages out and in, while no request waits
 *	sysfs.c	/sys/kernel/mm/cohort/pcpa/
 *
 * The area is a run of fixed blocks, called chunks here; what is free of them the
 * buddy allocator knows, and the block's lists.
 *
 * Locks
 *	cohort_size_mutex	sizes; its holder may wait for pages, and nothing else for it;
 *				outside cohort_mutex and cohort_pcpa_mutex
 *	cohort_pcpa_mutex	the area as it is, and one contiguous piece at a time; sleeps
 *	cohort_copies.lock	frames kept for pieces; inside a file's i_pages lock
 *	zone->lock		everything else
 */
#ifndef _MM_COHORT_PCPA_H
#define _MM_COHORT_PCPA_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/cohort_pcpa.h>
#include <linux/kobject.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>

#include "../cohort.h"
#include "../lib/arith_pcpa.h"

/* The longest that the timer may be set to. */
#define COHORT_TIMER_MAX_MS	60000

/* Milliseconds after which a contiguous piece fails rather than being waited for. */
#define COHORT_CONTIG_MS	2000

/* Free pages that pulling leaves to readers; reclaim need not add to them. */
#define COHORT_AREA_KEEP	512UL

/*
 * Memory of clients is charged so: a memory cgroup beyond its limit gives up memory of its
 * own for it, but kills none of its processes.
 */
#define COHORT_CHARGE_GFP (GFP_KERNEL_ACCOUNT | __GFP_NOWARN | __GFP_RETRY_MAYFAIL)

/* Pages of the area that one look at an LRU list, under its lock, skips at most. */
#define COHORT_SPARE_MAX	1024UL

/**
 * struct cohort_chunk - a fixed block of the area
 * @client: frames that clients have
 * @lent: frames that hold what can be moved away, or will be clean page cache
 * @given: frames that hold what cannot leave, of requests that would have failed or killed
 * @held: what is free in it is kept for one contiguous piece
 * @blk: the block
 *
 * No frame is in two of the maps, and none that is free is in one; a frame in none is free,
 * at hand, or page cache.
 */
struct cohort_chunk {
	DECLARE_BITMAP(client, COHORT_CHUNK);
	DECLARE_BITMAP(lent, COHORT_CHUNK);
	DECLARE_BITMAP(given, COHORT_CHUNK);
	bool held;
	struct cohort_block blk;
};

/**
 * struct cohort_area - the area
 * @base: first frame
 * @nr: frames it reaches over; some of them may be lost
 * @zone: of all of them; NULL if there is no area
 * @room: its chunks
 * @nr_client: frames that are in a chunk's client
 * @nr_lent: in its lent
 * @nr_given: in its given
 * @low: no chunk below has free pages
 * @top: no chunk from here on is whole
 *
 * All under @zone's lock, @zone itself too.  A reader without it decides nothing for
 * good.
 */
struct cohort_area {
	unsigned long base;
	unsigned long nr;
	struct zone *zone;
	struct cohort_room room;
	unsigned long nr_client;
	unsigned long nr_lent;
	unsigned long nr_given;
	unsigned long low;
	unsigned long top;
};

/**
 * struct cohort_look - a chunk at one moment
 * @free: its free frames
 * @client: as in struct cohort_chunk
 * @lent: the same
 * @given: the same
 * @usable: pages may be handed out of it: it is not being isolated
 */
struct cohort_look {
	DECLARE_BITMAP(free, COHORT_CHUNK);
	DECLARE_BITMAP(client, COHORT_CHUNK);
	DECLARE_BITMAP(lent, COHORT_CHUNK);
	DECLARE_BITMAP(given, COHORT_CHUNK);
	bool usable;
};

/**
 * struct cohort_pcpa_sizes - a look at the area, in pages
 * @base: its first frame
 * @size: what was asked for
 * @free: free pages
 * @cache: page cache
 * @client: entitled clients
 * @lent: others, until a client needs them
 * @other: others, until they free them, or gone offline
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
	COHORT_BUSY_ANON,
	COHORT_BUSY_OFF_LRU,
	COHORT_BUSY_REFERENCED,
	COHORT_NR_BUSY,
};

/**
 * enum cohort_use - what a page of the area is taken for
 * @COHORT_USE_CACHE: a clean page of a file
 * @COHORT_USE_LENT: a movable page of any process, while memory is short
 * @COHORT_USE_GIVEN: pages of any request that would have got none
 * @COHORT_USE_CLIENT: an entitled client
 */
enum cohort_use {
	COHORT_USE_CACHE,
	COHORT_USE_LENT,
	COHORT_USE_GIVEN,
	COHORT_USE_CLIENT,
};

/* area.c */
extern struct cohort_area cohort_area;
extern const struct cohort_keeper cohort_pcpa_keeper;
bool cohort_area_lock(unsigned long *flags);
void cohort_area_unlock(unsigned long flags);
struct cohort_chunk *cohort_chunk_of(unsigned long pfn);
void cohort_chunk_free_map(const struct cohort_chunk *chunk, unsigned long *map);
bool cohort_chunk_look(unsigned long pfn, struct cohort_look *look);
unsigned long cohort_chunk_room(unsigned long pfn, unsigned int order);
struct page *cohort_area_take(unsigned int order, enum cohort_use use);
struct page *cohort_area_take_cache(void);
bool cohort_area_prep(struct page *page, unsigned int order, gfp_t gfp,
		      unsigned int alloc_flags);
void cohort_area_settle(unsigned long pfn);
bool __cohort_pcpa_suffices(unsigned long pfn, unsigned long skipped);
void cohort_pcpa_sizes(struct cohort_pcpa_sizes *sizes);

/* window.c */
bool cohort_area_hold(unsigned long start, unsigned long nr);
unsigned long cohort_area_held(unsigned long start, unsigned long nr);
bool cohort_area_unhold(unsigned long start, unsigned long nr, bool keep);

/* frames.c */
extern struct mutex cohort_size_mutex;
extern struct mutex cohort_pcpa_mutex;
unsigned long cohort_area_align(void);
unsigned long cohort_frames_find(int nid, unsigned long nr, unsigned long base,
				 unsigned long below);
void cohort_frames_free(unsigned long base, unsigned long nr);
bool cohort_pcpa_memory_for(unsigned long more);
int cohort_size_check(u64 size, u64 base, const char *what);
void cohort_size_tell(u64 size, const char *what, const char *why);
int cohort_pcpa_resize(u64 size, u64 base);

/* client.c */
extern int cohort_pcpa_node;
/* The first frame that what is set aside does not have, for devices that do not reach it. */
extern unsigned long cohort_pcpa_below;
extern unsigned int cohort_pcpa_min_order;
extern unsigned int cohort_pcpa_timer_ms;
/* Pages of buffers that a user without CAP_SYS_RESOURCE may have; 0: any number. */
extern unsigned long cohort_pcpa_user_max;
bool cohort_pcpa_will_leave(unsigned int order, const struct alloc_context *ac);
enum cohort_pcpa_state cohort_pcpa_state(void);
bool cohort_pcpa_spare(int nid, unsigned long pages);
void cohort_pcpa_want(unsigned long pages);
void cohort_pcpa_done(unsigned long pages);
void cohort_pcpa_got(unsigned long pages);
struct page *cohort_pcpa_piece(gfp_t gfp, unsigned int order);
struct folio *__cohort_pcpa_cache(struct address_space *mapping, gfp_t gfp,
				  const nodemask_t *nodes);
int cohort_pcpa_is_entitled(struct task_struct *task);
int cohort_pcpa_entitle(struct task_struct *task, bool on);

/* reclaim.c */
extern atomic_long_t cohort_quick_ns;
int cohort_reclaim_init(void);
void cohort_area_drop(unsigned long start, unsigned long end, unsigned long deadline, bool spare);
unsigned long cohort_quick_reclaim(unsigned long want, unsigned int order);
void cohort_pcpa_announce(unsigned long pages);
unsigned long cohort_pcpa_announced_pages(void);
void cohort_pcpa_announced_met(unsigned long pages);

/* Folios dropped together: one hold of the LRU's lock. */
#define COHORT_BATCH	64U

/**
 * struct cohort_batch - pages that are dropped together
 * @folio: a reference to each, locked
 * @nr: how many
 * @spare: pages of memory cgroups that memory.min protects do not join
 */
struct cohort_batch {
	struct folio *folio[COHORT_BATCH];
	unsigned int nr;
	bool spare;
};

/* How often pages may be mapped that a round takes. */
enum cohort_round {
	COHORT_ROUND_UNMAPPED,
	COHORT_ROUND_ONE,
	COHORT_ROUND_SHARED,
};

/* drop.c */
enum cohort_busy cohort_busy_why(struct folio *folio);
bool cohort_page_stuck(const struct page *page);
void cohort_batch_add(struct cohort_batch *batch, struct page *page,
		      enum cohort_round round);
unsigned int cohort_batch_drop(struct cohort_batch *batch);
unsigned int cohort_batch_list(struct cohort_batch *batch, struct list_head *list);
unsigned int cohort_list_drop(struct list_head *list);
void cohort_list_back(struct list_head *list);

/* A number for a place in a file, to be hashed. */
static inline u64 cohort_place_key(const struct address_space *mapping, pgoff_t index)
{
	return (unsigned long)mapping ^ ((u64)index << 40 | index);
}

/* trail.c */
int cohort_trail_resize(unsigned long pages);
void cohort_trail_note(const struct address_space *mapping, pgoff_t index);

/* contig.c */
extern atomic_long_t cohort_busy_count[COHORT_NR_BUSY];
extern atomic_long_t cohort_contig_ns_max;
extern const char *const cohort_busy_names[COHORT_NR_BUSY];
struct page *cohort_pcpa_contig(unsigned long nr, gfp_t gfp, int *err);

/**
 * struct cohort_copies_stat - a look at the frames kept for contiguous pieces
 * @size: how many
 * @client: those that clients have
 * @stored: pages copied when they were evicted
 * @hits: copies that were read again
 * @dropped: copies forgotten for a piece
 */
struct cohort_copies_stat {
	unsigned long size;
	unsigned long client;
	unsigned long stored;
	unsigned long hits;
	unsigned long dropped;
};

/* copies.c */
bool cohort_copies_refault(struct folio *folio);
struct page *cohort_copies_piece(unsigned long nr, gfp_t gfp);
bool cohort_copies_free(struct page *page, unsigned long nr);
void cohort_copies_stats(struct cohort_copies_stat *stat);
int cohort_copies_resize(u64 size, u64 base);

/* tidy.c */
unsigned int cohort_move_out(struct list_head *list, bool reclaim, unsigned long end);
bool cohort_pull_readable(struct page *page);
struct folio *cohort_pull_target(struct folio *src, unsigned long end);
unsigned long __cohort_pcpa_pull(struct pglist_data *pgdat, int top);
void cohort_pcpa_tidy_soon(void);
void cohort_pcpa_tidy_for_client(void);

/* sysfs.c */
#ifdef CONFIG_COHORT_PCPA
struct page *cohort_pcpa_heap_page(gfp_t gfp, unsigned int order);
int cohort_pcpa_sysfs_init(struct kobject *parent);
void cohort_pcpa_init(void);
#else
static inline struct page *cohort_pcpa_heap_page(gfp_t gfp, unsigned int order)
{
	return NULL;
}

static inline int cohort_pcpa_sysfs_init(struct kobject *parent)
{
	return 0;
}

static inline void cohort_pcpa_init(void)
{
}
#endif

#endif /* _MM_COHORT_PCPA_H */
