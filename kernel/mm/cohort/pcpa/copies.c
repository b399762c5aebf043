// SPDX-License-Identifier: GPL-2.0
/*
 * Frames that are kept for contiguous pieces, and hold copies of evicted pages meanwhile.
 *
 * A page of the page cache can be held by any user for any time: in a pipe, by a pin, by a
 * server of FUSE that does not answer.  So no page of these frames is ever in the page
 * cache.  A clean page of a file that reclaim evicts is copied here, and copied back where
 * it is read again; no reference to a frame leaves this file but in a client's piece.  A
 * piece is there as soon as the copies in it are forgotten, whatever others do.
 *
 * A copy is found where its file has the shadow of the eviction in the place of the page.
 * All that makes the content of a file another one clears the shadow, or puts a page there:
 * truncating, writing, invalidating.  An eviction that leaves a shadow stores the copy or
 * forgets an older one under the same hold of the file's lock, so that a shadow and the
 * copy of its place are of one eviction.  Of a page that is cut in part the shadow may stay,
 * so its copy is forgotten, under that lock, too.  A copy with no shadow is not found, and is
 * the next one's frame some day.  A frame that is poisoned is neither read nor written again.
 */
#define pr_fmt(fmt) "cohort: pcpa: " fmt

#include <linux/bitmap.h>
#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/highmem.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>

#include "../cohort.h"
#include "../host/filemap.h"
#include "pcpa.h"

/* Frames whose copies are forgotten, and pages of a folio copied, under one hold of the lock. */
#define COPIES_FORGET	64UL
#define COPIES_FOLIO	16UL

/**
 * struct cohort_copy - what a frame holds
 * @order: frames without a copy, then those with one, the oldest first; in no list: a client's
 * @place: those of one hash; unhashed: no copy
 * @mapping: the file of the copy
 * @index: its place there
 */
struct cohort_copy {
	struct list_head order;
	struct hlist_node place;
	const struct address_space *mapping;
	pgoff_t index;
};

/**
 * struct cohort_copies - the frames
 * @lock: everything here; taken inside a file's i_pages lock, takes none
 * @base: first frame
 * @nr: how many; 0 if there are none
 * @copy: one for each
 * @client: a bit for each that a client has, or that came back poisoned
 * @late: of those, a bit for each that its client gave back with a reference still held
 * @table: 1 << @bits heads of places
 * @bits: of a hash
 * @order: see struct cohort_copy
 * @nr_client: those that clients have
 * @stat: what has happened
 */
struct cohort_copies {
	spinlock_t lock;
	unsigned long base;
	unsigned long nr;
	struct cohort_copy *copy;
	unsigned long *client;
	unsigned long *late;
	struct hlist_head *table;
	unsigned int bits;
	struct list_head order;
	unsigned long nr_client;
	struct cohort_copies_stat stat;
};

DEFINE_STATIC_KEY_FALSE(cohort_copies_key);
DEFINE_STATIC_KEY_FALSE(cohort_copies_once_key);
static struct cohort_copies copies = {
	.lock = __SPIN_LOCK_UNLOCKED(copies.lock),
	.order = LIST_HEAD_INIT(copies.order),
};

/* places */

static struct hlist_head *cohort_copy_head(const struct address_space *mapping, pgoff_t index)
{
	return &copies.table[hash_64(cohort_place_key(mapping, index), copies.bits)];
}

static struct cohort_copy *cohort_copy_find(const struct address_space *mapping, pgoff_t index)
{
	struct cohort_copy *copy;

	hlist_for_each_entry(copy, cohort_copy_head(mapping, index), place)
		if (copy->mapping == mapping && copy->index == index)
			return copy;
	return NULL;
}

static struct page *cohort_copy_page(const struct cohort_copy *copy)
{
	return pfn_to_page(copies.base + (copy - copies.copy));
}

static void cohort_copy_forget(struct cohort_copy *copy)
{
	hlist_del_init(&copy->place);
	list_move(&copy->order, &copies.order);
}

/* The frame of the oldest copy, or one without; a poisoned one is in no list from then on. */
static struct cohort_copy *cohort_copy_next(void)
{
	struct cohort_copy *copy, *next;

	list_for_each_entry_safe(copy, next, &copies.order, order) {
		if (!PageHWPoison(cohort_copy_page(copy)))
			return copy;
		hlist_del_init(&copy->place);
		list_del_init(&copy->order);
	}
	return NULL;
}

/* evictions */

/*
 * Files of which there may be copies: of file systems for which it is known that changes all go
 * through the page cache, or clear shadows, and that a page that is new and up to date is not
 * read again; not the plain text of encrypted ones, nor what is to be wiped when freed.  No other
 * one has to wait for the lock.
 */
static bool cohort_copies_known(const struct address_space *mapping)
{
	const struct inode *inode = mapping->host;
	const struct super_block *sb = inode->i_sb;

	/* Other drivers of the same family have the same number. */
	return sb->s_magic == EXT4_SUPER_MAGIC && !strcmp(sb->s_type->name, "ext4") &&
	       S_ISREG(inode->i_mode) && !IS_ENCRYPTED(inode) && !want_init_on_free();
}

static void cohort_copy_store(const struct address_space *mapping, pgoff_t index,
			      struct page *page, bool hold)
{
	struct cohort_copy *copy = cohort_copy_find(mapping, index);

	if (copy)
		cohort_copy_forget(copy);
	copy = hold ? cohort_copy_next() : NULL;
	if (!copy)
		return;
	if (!hlist_unhashed(&copy->place))
		hlist_del(&copy->place);
	copy->mapping = mapping;
	copy->index = index;
	hlist_add_head(&copy->place, cohort_copy_head(mapping, index));
	list_move_tail(&copy->order, &copies.order);
	/* Stock drops such a page without a look, and with it a memory error that is not known. */
	if (copy_mc_highpage(cohort_copy_page(copy), page))
		cohort_copy_forget(copy);
	else
		copies.stat.stored++;
}

/**
 * cohort_copies_evict() - a folio leaves the page cache, and a shadow stays
 * @mapping: its file, whose i_pages is locked
 * @folio: clean, its references frozen, its index still set
 * @keep: a copy is wanted; else an older one is forgotten
 */
void cohort_copies_evict(const struct address_space *mapping, struct folio *folio, bool keep)
{
	unsigned long i, flags, nr = folio_nr_pages(folio);

	if (!cohort_copies_known(mapping))
		return;
	keep = keep && nr <= COPIES_FOLIO && folio_test_uptodate(folio) &&
	       !folio_test_hwpoison(folio) && !IS_SWAPFILE(mapping->host);
	spin_lock_irqsave(&copies.lock, flags);
	/* What a direct write changes meanwhile is forgotten under the lock when it ends. */
	keep = keep && !atomic_read(&mapping->host->i_dio_count);
	for (i = 0; copies.nr && i < nr; i++)
		cohort_copy_store(mapping, folio->index + i, folio_page(folio, i), keep);
	spin_unlock_irqrestore(&copies.lock, flags);
}

/* Truncation cuts off the last index there may be, too. */
static void cohort_copies_forget(struct address_space *mapping, pgoff_t index, unsigned long nr)
{
	struct cohort_copy *copy;
	unsigned long flags;

	/* The shadow is seen without the lock, and before the copy is there. */
	xa_lock_irqsave(&mapping->i_pages, flags);
	spin_lock(&copies.lock);
	while (copies.nr && nr--) {
		copy = cohort_copy_find(mapping, index++);
		if (copy)
			cohort_copy_forget(copy);
	}
	spin_unlock(&copies.lock);
	xa_unlock_irqrestore(&mapping->i_pages, flags);
}

/**
 * cohort_copies_cut() - a part of a page that is not in memory is cut off
 * @mapping: its file, of which no page is read meanwhile
 * @index: its place there
 *
 * Where blocks are smaller than pages the file system does not bring the page in for that.
 */
void cohort_copies_cut(struct address_space *mapping, pgoff_t index)
{
	if (cohort_copies_known(mapping))
		cohort_copies_forget(mapping, index, 1);
}

/**
 * cohort_copies_written() - a direct write is about to end
 * @mapping: its file, of whose evicted pages none is copied meanwhile
 * @pos: first byte
 * @count: bytes; not 0
 *
 * Shadows are not cleared where a page has come in between, which may be one of a copy.
 *
 * Context: may be scheduled away.
 * Return: true if anything of the file is in memory.
 */
bool cohort_copies_written(struct address_space *mapping, loff_t pos, size_t count)
{
	pgoff_t index = pos >> PAGE_SHIFT, last = (pos + count - 1) >> PAGE_SHIFT;

	if (mapping_empty(mapping))
		return false;
	if (!cohort_copies_known(mapping))
		return true;
	for (; index <= last; index += COPIES_FORGET) {
		cohort_copies_forget(mapping, index, min(last - index + 1, COPIES_FORGET));
		cond_resched();
	}
	return true;
}

/**
 * cohort_copies_refault() - a page that was evicted is wanted again
 * @folio: new in the page cache, locked; a shadow was in its place
 *
 * With a copy of it the folio is up to date.
 *
 * Return: true if there was one.
 */
bool cohort_copies_refault(struct folio *folio)
{
	struct cohort_copy *copy = NULL;
	unsigned long flags;
	bool there = false;

	if (folio_test_large(folio) || !cohort_copies_known(folio->mapping))
		return false;
	spin_lock_irqsave(&copies.lock, flags);
	if (copies.nr)
		copy = cohort_copy_find(folio->mapping, folio->index);
	if (copy) {
		there = !PageHWPoison(cohort_copy_page(copy)) &&
			!copy_mc_highpage(folio_page(folio, 0), cohort_copy_page(copy));
		cohort_copy_forget(copy);
		copies.stat.hits += there;
	}
	spin_unlock_irqrestore(&copies.lock, flags);
	if (there)
		folio_mark_uptodate(folio);
	return there;
}

/**
 * __cohort_copies_filled() - a folio need not be read
 * @folio: new in the page cache, locked, up to date; unlocked on return
 * @mark: readahead starts again where it is met
 *
 * Return: -EEXIST, as for a folio that was there.
 */
int __cohort_copies_filled(struct folio *folio, bool mark)
{
	if (mark)
		folio_set_readahead(folio);
	folio_unlock(folio);
	return -EEXIST;
}

/* pieces */

/* As the page allocator does it, which never sees a frame that is kept. */
static void cohort_frame_wipe(struct page *page)
{
	if (want_init_on_free() && !PageHWPoison(page))
		clear_highpage(page);
}

static void cohort_frame_return(unsigned long i)
{
	__clear_bit(i, copies.client);
	copies.nr_client--;
	list_add(&copies.copy[i].order, &copies.order);
}

/* What a client gave back while a reference was held to it, and is held no more. */
static void cohort_copies_late(void)
{
	unsigned long i = 0;

	spin_lock_irq(&copies.lock);
	for_each_set_bit_from(i, copies.late, copies.nr) {
		struct page *page = pfn_to_page(copies.base + i);

		if (page_ref_count(page) != 1)
			continue;
		__clear_bit(i, copies.late);
		/* It is a client's until it returns, so that the frames stay. */
		spin_unlock_irq(&copies.lock);
		cohort_frame_wipe(page);
		spin_lock_irq(&copies.lock);
		cohort_frame_return(i);
	}
	spin_unlock_irq(&copies.lock);
}

/* As aligned as its size is, up to a chunk. Return: its first frame's number here, or -1. */
static long cohort_piece_claim(unsigned long nr)
{
	unsigned long align = clamp(nr & -nr, 1UL, COHORT_CHUNK);
	long at = -1;

	cohort_copies_late();
	spin_lock_irq(&copies.lock);
	if (nr <= copies.nr)
		at = bitmap_find_next_zero_area(copies.client, copies.nr, 0, nr, align - 1);
	if (at >= 0 && at + nr > copies.nr)
		at = -1;
	if (at >= 0) {
		bitmap_set(copies.client, at, nr);
		copies.nr_client += nr;
	}
	spin_unlock_irq(&copies.lock);
	return at;
}

/*
 * The frames are a client's already, so what is freed is no longer put there.  A copy that
 * is stored meanwhile in a frame which is still on the list goes, too: after its turn a frame
 * is neither on the list nor found.
 */
static void cohort_piece_empty(unsigned long at, unsigned long nr)
{
	unsigned long i, end = at + nr, stop;

	for (; at < end; at = stop) {
		stop = min(at + COPIES_FORGET, end);
		spin_lock_irq(&copies.lock);
		for (i = at; i < stop; i++) {
			if (!hlist_unhashed(&copies.copy[i].place)) {
				hlist_del_init(&copies.copy[i].place);
				copies.stat.dropped++;
			}
			list_del_init(&copies.copy[i].order);
		}
		spin_unlock_irq(&copies.lock);
		cond_resched();
	}
}

static void cohort_piece_return(unsigned long at, unsigned long nr)
{
	unsigned long i, end = at + nr;

	for (i = at; i < end; i++) {
		struct page *page = pfn_to_page(copies.base + i);
		bool late = page_ref_count(page) != 1;

		if (!late)
			cohort_frame_wipe(page);
		spin_lock_irq(&copies.lock);
		if (PageHWPoison(page))
			copies.nr_client--;
		else if (late)
			__set_bit(i, copies.late);
		else
			cohort_frame_return(i);
		spin_unlock_irq(&copies.lock);
		cond_resched();
	}
}

static bool cohort_piece_poisoned(unsigned long at, unsigned long nr)
{
	unsigned long i;

	for (i = at; i < at + nr; i++)
		if (PageHWPoison(pfn_to_page(copies.base + i)))
			return true;
	return false;
}

static struct page *cohort_piece_prep(unsigned long at, unsigned long nr, gfp_t gfp)
{
	struct page *page = pfn_to_page(copies.base + at);
	unsigned long i;

	for (i = 0; want_init_on_alloc(gfp) && i < nr; i++) {
		clear_highpage(page + i);
		cond_resched();
	}
	return page;
}

/**
 * cohort_copies_piece() - a contiguous piece of the frames
 * @nr: pages
 * @gfp: whether to zero them
 *
 * Context: may be scheduled away, does not wait for anything.
 * Return: its first page, each with one reference, or NULL if clients have too much.
 */
struct page *cohort_copies_piece(unsigned long nr, gfp_t gfp)
{
	long at;

	while ((at = cohort_piece_claim(nr)) >= 0) {
		cohort_piece_empty(at, nr);
		if (!cohort_piece_poisoned(at, nr))
			return cohort_piece_prep(at, nr, gfp);
		/* The poisoned ones stay out. */
		cohort_piece_return(at, nr);
	}
	return NULL;
}

/**
 * cohort_copies_free() - a piece comes back
 * @page: its first page
 * @nr: pages
 *
 * Context: may be scheduled away.
 * Return: false if it is not of these frames.
 */
bool cohort_copies_free(struct page *page, unsigned long nr)
{
	unsigned long at;
	bool ours;

	/* They do not go while a client has some of them; but this may be a piece of the area. */
	spin_lock_irq(&copies.lock);
	at = page_to_pfn(page) - copies.base;
	ours = at < copies.nr;
	spin_unlock_irq(&copies.lock);
	if (ours)
		cohort_piece_return(at, nr);
	return ours;
}

/**
 * cohort_copies_stats() - a look at the frames
 * @stat: receives it
 */
void cohort_copies_stats(struct cohort_copies_stat *stat)
{
	unsigned long flags;

	spin_lock_irqsave(&copies.lock, flags);
	*stat = copies.stat;
	stat->size = copies.nr;
	stat->client = copies.nr_client;
	spin_unlock_irqrestore(&copies.lock, flags);
}

/* sizes */

static void cohort_copies_release(struct cohort_copies *c)
{
	cohort_frames_free(c->base, c->nr);
	bitmap_free(c->client);
	bitmap_free(c->late);
	kvfree(c->copy);
	kvfree(c->table);
}

static int cohort_copies_make(struct cohort_copies *c, unsigned long nr, unsigned long base)
{
	unsigned long i;

	c->bits = ilog2(nr);
	c->copy = kvcalloc(nr, sizeof(*c->copy), GFP_KERNEL);
	c->table = kvcalloc(1UL << c->bits, sizeof(*c->table), GFP_KERNEL);
	c->client = bitmap_zalloc(nr, GFP_KERNEL);
	c->late = bitmap_zalloc(nr, GFP_KERNEL);
	if (c->copy && c->table && c->client && c->late)
		c->base = cohort_frames_find(cohort_pcpa_node, nr, base, cohort_pcpa_below);
	if (!c->base) {
		cohort_copies_release(c);
		return -ENOMEM;
	}
	c->nr = nr;
	for (i = 0; i < nr; i++)
		list_add_tail(&c->copy[i].order, &c->order);
	return 0;
}

/* The frames of @c come, those that there were go into @c, unless a client has some of them. */
static int cohort_copies_swap(struct cohort_copies *c)
{
	int err = 0;

	cohort_copies_late();
	spin_lock_irq(&copies.lock);
	if (copies.nr_client) {
		err = -EBUSY;
	} else {
		swap(copies.base, c->base);
		swap(copies.nr, c->nr);
		swap(copies.copy, c->copy);
		swap(copies.client, c->client);
		swap(copies.late, c->late);
		swap(copies.table, c->table);
		swap(copies.bits, c->bits);
		INIT_LIST_HEAD(&copies.order);
		list_splice_init(&c->order, &copies.order);
	}
	spin_unlock_irq(&copies.lock);
	return err;
}

/* Under the mutex; the key follows what there is. */
static int cohort_copies_change(unsigned long nr, unsigned long base)
{
	struct cohort_copies new = { .order = LIST_HEAD_INIT(new.order) };
	int err = 0;

	/* The new frames are there before the old ones go. */
	if (nr)
		err = cohort_pcpa_memory_for(nr) ? cohort_copies_make(&new, nr, base) : -ENOMEM;
	if (err)
		return err;
	/*
	 * All that stores or forgets copies does so before there is the first frame: were
	 * it the other way round, a copy could outlive an eviction.
	 */
	if (nr) {
		static_branch_enable(&cohort_copies_once_key);
		static_branch_enable(&cohort_copies_key);
	}
	err = cohort_copies_swap(&new);
	cohort_copies_release(&new);
	if (!copies.nr)
		static_branch_disable(&cohort_copies_key);
	return err;
}

/**
 * cohort_copies_resize() - how much is kept for contiguous pieces
 * @size: bytes; 0 gives it back
 * @base: its address, COHORT_ANY_BASE for any
 *
 * Context: sleeps.
 * Return: 0, -EINVAL for a size or base that cannot be, -EBUSY while a client has a piece,
 * -ENOMEM, -EINTR; nothing has changed then.
 */
int cohort_copies_resize(u64 size, u64 base)
{
	static const char what[] = " for contiguous pieces";
	unsigned long nr = size >> PAGE_SHIFT;
	unsigned long pfn = base == COHORT_ANY_BASE ? 0 : PHYS_PFN(base);
	int err = cohort_size_check(size, base, what);

	err = err ?: mutex_lock_killable(&cohort_size_mutex);
	if (err)
		return err;
	if (nr != copies.nr || (nr && pfn && pfn != copies.base))
		err = cohort_copies_change(nr, pfn);
	mutex_unlock(&cohort_size_mutex);
	cohort_size_tell(size, what, !err ? NULL : err == -EBUSY ? "a client has one" :
			 "no such piece of memory can be emptied");
	return err;
}
