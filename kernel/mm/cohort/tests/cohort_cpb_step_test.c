// SPDX-License-Identifier: GPL-2.0
/*
 * The contiguous page buffer: the steps A1 to A6 of its paper, and switching it.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/vmstat.h>

#include "../filemap.h"
#include "cohort_cpb_test.h"

static unsigned long cohort_cpb_test_event(enum vm_event_item item)
{
	unsigned long *events = kmalloc_array(NR_VM_EVENT_ITEMS, sizeof(long), GFP_KERNEL);
	unsigned long value;

	if (!events)
		return 0;
	all_vm_events(events);
	value = events[item];
	kfree(events);
	return value;
}

/* A1: page cache, and what I/O buffers are made of, go past. */
static void cohort_cpb_test_a1_cache_goes_past(struct kunit *test)
{
	struct address_space *mapping = kunit_kzalloc(test, sizeof(*mapping), GFP_KERNEL);
	struct page *page;
	struct folio *folio;

	KUNIT_ASSERT_NOT_NULL(test, mapping);
	address_space_init_once(mapping);
	mapping_set_gfp_mask(mapping, GFP_HIGHUSER_MOVABLE);
	cohort_cpb_test_fill(test, 2);

	folio = cohort_filemap_alloc(mapping, GFP_HIGHUSER_MOVABLE, 0);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_EXPECT_NULL(test, cohort_cpb_test_dom_of(&folio->page));
	folio_put(folio);

	page = cohort_buffer_alloc(GFP_HIGHUSER, 0);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_NULL(test, cohort_cpb_test_dom_of(page));
	__free_page(page);
}

/* A2: a process is given the pages of its own set, one after the other. */
static void cohort_cpb_test_a2_own_set(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 2 * cohort_pages());
	struct page *first, *hole;
	struct cohort_domain *dom;
	unsigned int i;

	cohort_test_touch(test, addr, cohort_pages());
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	first = cohort_test_page_at(test, addr);
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED(page_to_pfn(first), cohort_pages()));
	for (i = 0; i < cohort_pages(); i++)
		KUNIT_EXPECT_PTR_EQ(test, first + i,
				    cohort_test_page_at(test, addr + i * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, dom->nr_blocks, 1);
	KUNIT_EXPECT_EQ(test, dom->nr_parked, 0);

	/* What it frees is its own again, before any other set is begun. */
	lru_add_drain();
	hole = cohort_test_page_at(test, addr + PAGE_SIZE);
	do_madvise(current->mm, addr + PAGE_SIZE, PAGE_SIZE, MADV_DONTNEED);
	KUNIT_EXPECT_TRUE(test, cohort_page_parked(hole));
	cohort_test_touch(test, addr + cohort_pages() * PAGE_SIZE, 1);
	KUNIT_EXPECT_PTR_EQ(test, hole,
			    cohort_test_page_at(test, addr + cohort_pages() * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, dom->nr_blocks, 1);
}

/* A2: requests that come in turn do not share a set. */
static void cohort_cpb_test_a2_interleaved(struct kunit *test)
{
	struct cohort_domain *other = cohort_domain_create(COHORT_PROCESS, NUMA_NO_NODE,
							   GFP_KERNEL);
	unsigned int i, first, pages = 4 * cohort_pages(), wrong = 0;
	struct cohort_test *ct = test->priv;
	struct cohort_domain *mine = ct->dom;
	struct page *ended;

	KUNIT_ASSERT_NOT_NULL(test, other);
	for (i = 0; i < pages; i++) {
		ct->dom = i & 1 ? other : mine;
		first = cohort_test_take(test, 1);
		wrong += cohort_cpb_test_dom_of(ct->page[first]) != ct->dom;
	}
	ct->dom = mine;
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_EQ(test, mine->nr_blocks, 2);
	KUNIT_EXPECT_EQ(test, other->nr_blocks, 2);

	/* One of the two ends: all of its memory is in whole sets again. */
	ended = ct->page[1];
	for (i = 1; i < pages; i += 2)
		cohort_test_free(test, i, 1);
	KUNIT_EXPECT_EQ(test, other->nr_blocks, 0);
	cohort_domain_destroy(other);
	KUNIT_EXPECT_GE(test, cohort_cpb_test_buddy_order(ended), (int)cohort_order);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_buddy_order(ct->page[0]), -1);
}

/* Threads that wait for each other have a reservation each, by CPU. */
static void cohort_cpb_test_a2_shards(struct kunit *test)
{
	unsigned long addr = cohort_test_map(test, 64);
	struct cohort_domain *dom, *shard;

	if (!cpu_online(1))
		kunit_skip(test, "no second CPU");
	cohort_test_touch(test, addr, 1);
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(1)), 0);
	KUNIT_EXPECT_PTR_EQ(test, cohort_anon_domain(current->mm, 0), dom);

	dom->nr_waits = COHORT_CROWD;
	shard = cohort_anon_domain(current->mm, 0);
	KUNIT_EXPECT_PTR_NE(test, shard, dom);
	cohort_test_touch(test, addr + PAGE_SIZE, 1);
	KUNIT_EXPECT_PTR_EQ(test, shard, cohort_test_domain_at(test, addr + PAGE_SIZE));
	cohort_test_set_adj(900);
	KUNIT_EXPECT_EQ(test, shard->class, COHORT_BACKGROUND);

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(0)), 0);
	KUNIT_EXPECT_PTR_EQ(test, cohort_anon_domain(current->mm, 0), dom);
	/* The end of the address space takes both. */
}

/* A3: the next set comes from the buffer of this CPU, whole. */
static void cohort_cpb_test_a3_set_from_buffer(struct kunit *test)
{
	struct cohort_domain *buffer = cohort_cpb_test_buffer();
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;
	unsigned long refills;
	unsigned int before;

	cohort_cpb_test_fill(test, 2);
	before = buffer->nr_blocks;
	blk = list_last_entry(&buffer->list[__fls(buffer->nonempty)],
			      struct cohort_block, node);
	refills = cohort_cpb_test_event(COHORT_REFILL);
	cohort_test_take(test, 1);

	KUNIT_EXPECT_PTR_EQ(test, cohort_test_block(ct->page[ct->nr - 1]), blk);
	KUNIT_EXPECT_PTR_EQ(test, blk->dom, ct->dom);
	KUNIT_EXPECT_EQ(test, buffer->nr_blocks, before - 1);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, cohort_pages() - 1);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_event(COHORT_REFILL), refills);
}

/* Nobody takes a set of a zone or node it must not have. */
static void cohort_cpb_test_a3_not_allowed(struct kunit *test)
{
	struct cohort_domain *buffer = cohort_cpb_test_buffer();
	struct cohort_test *ct = test->priv;
	nodemask_t none = NODE_MASK_NONE;
	struct alloc_context ac;
	unsigned int before;

	cohort_cpb_test_fill(test, 2);
	before = buffer->nr_blocks;
	cohort_cpb_test_context(&ac, GFP_HIGHUSER_MOVABLE);
	ac.preferred_zoneref = ac.zonelist->_zonerefs + MAX_ZONES_PER_ZONELIST;
	ac.nodemask = &none;
	KUNIT_EXPECT_FALSE(test, cohort_cpb_refill(ct->dom, GFP_HIGHUSER_MOVABLE, 0, &ac));
	KUNIT_EXPECT_EQ(test, buffer->nr_blocks, before);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
}

/* A4: all of what was taken apart, though it exceeds the refill. */
static void cohort_cpb_test_a4_refill(struct kunit *test)
{
	struct cohort_domain *buffer = cohort_cpb_test_buffer();
	unsigned int sets = DIV_ROUND_UP(COHORT_REFILL_PAGES, cohort_pages());
	struct cohort_test *ct = test->priv;
	unsigned long refills = cohort_cpb_test_event(COHORT_REFILL);

	KUNIT_ASSERT_EQ(test, buffer->nr_blocks, 0);
	cohort_test_take(test, 1);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 1);
	KUNIT_EXPECT_EQ(test, buffer->nr_blocks, sets - 1);
	KUNIT_EXPECT_EQ(test, 1 + ct->dom->nr_parked + buffer->nr_parked,
			sets * cohort_pages());
	KUNIT_EXPECT_GE(test, sets * cohort_pages(), COHORT_REFILL_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_event(COHORT_REFILL), refills + sets);
}

/* A free block smaller than a set has a slot to itself, and no other page of it. */
static void cohort_cpb_test_a4_remnant(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_HIGHUSER_MOVABLE, COHORT_MAX_SET_ORDER);
	struct cohort_test *ct = test->priv;
	struct cohort_block *blk;
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	split_page(page, COHORT_MAX_SET_ORDER);
	blk = cohort_test_block(page);
	cohort_cpb_test_make_remnant(test, page + 4, 4);
	KUNIT_ASSERT_TRUE(test, cohort_block_publish(ct->dom, page + 4, 2));
	KUNIT_EXPECT_EQ(test, blk->order, 2);
	KUNIT_EXPECT_EQ(test, blk->first, 4);
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 4);

	/* Its neighbours are none of it, used or free. */
	__free_page(page);
	KUNIT_EXPECT_FALSE(test, cohort_page_parked(page));
	KUNIT_EXPECT_EQ(test, ct->dom->nr_parked, 4);
	cohort_cpb_test_make_remnant(test, page + 8, 8);
	KUNIT_EXPECT_FALSE(test, cohort_block_publish(ct->dom, page + 8, 3));
	cohort_buddy_give(page + 8, 3);

	cohort_test_take(test, 4);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_PTR_EQ(test, ct->page[i], page + 4 + i);
	cohort_test_free_shuffled(test);
	KUNIT_EXPECT_NULL(test, blk->dom);
	for (i = 1; i < 4; i++)
		__free_page(page + i);
	/* All sixteen have found each other. */
	KUNIT_EXPECT_GE(test, cohort_cpb_test_buddy_order(page), COHORT_MAX_SET_ORDER);
}

/* What is smaller than a set is looked for first, or last. */
static void cohort_cpb_test_a4_preference(struct kunit *test)
{
	struct page *page = alloc_pages(GFP_HIGHUSER_MOVABLE, COHORT_MAX_SET_ORDER);
	struct cohort_set set[COHORT_REFILL_SETS];
	struct zone *zone = page_zone(page);
	unsigned int i, nr, small = 0, large = 0;

	KUNIT_ASSERT_NOT_NULL(test, page);
	split_page(page, COHORT_MAX_SET_ORDER);
	__free_page(page + 2);
	__free_page(page + 3);
	KUNIT_ASSERT_EQ(test, cohort_cpb_test_buddy_order(page + 2), 1);

	nr = cohort_buddy_take_sets(zone, cohort_order, true, 1, set);
	KUNIT_EXPECT_EQ(test, nr, 1);
	KUNIT_EXPECT_LT(test, set[0].order, cohort_order);
	cohort_buddy_give_sets(zone, set, nr);

	nr = cohort_buddy_take_sets(zone, cohort_order, false, COHORT_REFILL_PAGES, set);
	for (i = 0; i < nr; i++)
		*(set[i].order == cohort_order ? &large : &small) += 1;
	cohort_buddy_give_sets(zone, set, nr);
	KUNIT_EXPECT_EQ(test, small, 0);
	KUNIT_EXPECT_EQ(test, large, DIV_ROUND_UP(COHORT_REFILL_PAGES, cohort_pages()));
	for (i = 0; i < COHORT_SET_PAGES; i++)
		if (i != 2 && i != 3)
			__free_page(page + i);
}

/* A5: no set to be had: the stock allocator serves. */
static void cohort_cpb_test_a5_fall_through(struct kunit *test)
{
	unsigned long cap = READ_ONCE(cohort_parked_max);
	unsigned long before = cohort_cpb_test_event(COHORT_FALLBACK);
	struct cohort_test *ct = test->priv;
	struct page *page;

	WRITE_ONCE(cohort_parked_max, 0);
	page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE, numa_mem_id(), NULL, ct->dom);
	WRITE_ONCE(cohort_parked_max, cap);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_NULL(test, cohort_cpb_test_dom_of(page));
	KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_event(COHORT_FALLBACK), before + 1);
	__free_page(page);
}

/* A6: before somebody has to wait, he is given what another process reserved. */
static void cohort_cpb_test_a6_steal(struct kunit *test)
{
	struct alloc_context ac;
	unsigned long before;
	struct page *page;

	cohort_test_take(test, 1);
	cohort_drain();
	before = cohort_test_domains();
	cohort_cpb_test_context(&ac, GFP_HIGHUSER_MOVABLE);
	page = cohort_steal_page(GFP_HIGHUSER_MOVABLE, 0, 0, &ac);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, page_count(page), 1);
	KUNIT_EXPECT_EQ(test, cohort_test_domains(), before - 1);
	/* It is still a page of that set, and comes back to it. */
	KUNIT_EXPECT_EQ(test, cohort_cpb_test_dom_of(page)->kind, COHORT_PROCESS);
	__free_page(page);
	KUNIT_EXPECT_EQ(test, cohort_test_domains(), before);

	/* An unmovable page would keep the set from ever being whole. */
	cohort_cpb_test_context(&ac, GFP_KERNEL);
	KUNIT_EXPECT_NULL(test, cohort_steal_page(GFP_KERNEL, 0, 0, &ac));
}

/* A6: a buffer has complete sets only; the rest of the one touched goes home. */
static void cohort_cpb_test_a6_steal_from_buffer(struct kunit *test)
{
	struct cohort_domain *buffer = cohort_cpb_test_buffer();
	struct alloc_context ac;
	unsigned int before;
	struct page *page;

	cohort_cpb_test_fill(test, 2);
	before = buffer->nr_blocks;
	cohort_cpb_test_context(&ac, GFP_HIGHUSER_MOVABLE);
	page = cohort_steal_page(GFP_HIGHUSER_MOVABLE, 0, 0, &ac);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, buffer->nr_blocks, before - 1);
	KUNIT_EXPECT_EQ(test, buffer->nr_parked, (before - 1) * cohort_pages());
	KUNIT_EXPECT_NULL(test, cohort_cpb_test_dom_of(page));
	__free_page(page);
	KUNIT_EXPECT_GE(test, cohort_cpb_test_buddy_order(page), (int)cohort_order);
}

static void cohort_cpb_test_excludes_region(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, cohort_region_switch(true), -EINVAL);
	KUNIT_EXPECT_FALSE(test, cohort_region_enabled());
	KUNIT_EXPECT_TRUE(test, cohort_cpb_enabled());

	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(false), 0);
	KUNIT_ASSERT_EQ(test, cohort_region_switch(true), 0);
	KUNIT_EXPECT_EQ(test, cohort_cpb_switch(true), -EINVAL);
	KUNIT_EXPECT_FALSE(test, cohort_cpb_enabled());
	KUNIT_ASSERT_EQ(test, cohort_region_switch(false), 0);
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(true), 0);
}

static void cohort_cpb_test_orders(struct kunit *test)
{
	unsigned int order, before = cohort_cpb_order;
	struct cohort_test *ct = test->priv;

	KUNIT_EXPECT_EQ(test, cohort_cpb_set_order(3), -EBUSY);
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(false), 0);
	KUNIT_EXPECT_EQ(test, cohort_cpb_set_order(0), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_cpb_set_order(5), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_cpb_order, before);
	for (order = COHORT_MIN_SET_ORDER; order <= COHORT_MAX_SET_ORDER; order++) {
		KUNIT_ASSERT_EQ(test, cohort_cpb_set_order(order), 0);
		KUNIT_ASSERT_EQ(test, cohort_cpb_switch(true), 0);
		KUNIT_EXPECT_EQ(test, cohort_pages(), 1U << order);
		cohort_cpb_test_a4_refill(test);
		cohort_test_take(test, 3 * cohort_pages());
		KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 4);
		cohort_test_free_shuffled(test);
		ct->nr = 0;
		KUNIT_EXPECT_EQ(test, ct->dom->nr_blocks, 0);
		KUNIT_ASSERT_EQ(test, cohort_cpb_switch(false), 0);
		KUNIT_EXPECT_EQ(test, cohort_test_zones(), 0);
	}
	cohort_cpb_set_order(before);
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(true), 0);
}

/* Memory in use stays as it is when the scheme goes off, and no set is left. */
static void cohort_cpb_test_off_and_on(struct kunit *test)
{
	unsigned long nr[COHORT_NR_KINDS], addr = cohort_test_map(test, 64);

	cohort_test_touch(test, addr, 20);
	KUNIT_EXPECT_GT(test, cohort_block_stats(nr), 0);
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(false), 0);
	KUNIT_EXPECT_FALSE(test, cohort_enabled());
	KUNIT_EXPECT_EQ(test, cohort_block_stats(nr), 0);
	KUNIT_EXPECT_EQ(test, cohort_test_zones(), 0);
	cohort_test_touch(test, addr + 20 * PAGE_SIZE, 20);
	KUNIT_EXPECT_EQ(test, cohort_block_stats(nr), 0);

	/* The same processes reserve again. */
	KUNIT_ASSERT_EQ(test, cohort_cpb_switch(true), 0);
	cohort_test_touch(test, addr + 40 * PAGE_SIZE, 24);
	KUNIT_EXPECT_PTR_EQ(test, current->mm->cohort,
			    cohort_test_domain_at(test, addr + 63 * PAGE_SIZE));
	cohort_test_verify(test, addr, 64);
}

/* System compaction would scatter what a set keeps together. */
static void cohort_cpb_test_compaction_goes_past(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned long pfn;

	cohort_test_take(test, 1);
	pfn = page_to_pfn(ct->page[0]);
	KUNIT_EXPECT_EQ(test, cohort_next_pfn(pfn), pfn + cohort_pages());
}

/* A process in the background has no set that its pages could do without. */
static void cohort_cpb_test_background(struct kunit *test)
{
	unsigned int i, pages = 8 * cohort_pages(), delay = cohort_compact_delay_ms;
	unsigned long addr = cohort_test_map(test, pages);
	struct cohort_domain *dom;

	cohort_test_touch(test, addr, pages);
	dom = current->mm->cohort;
	KUNIT_ASSERT_NOT_NULL(test, dom);
	lru_add_drain_all();
	for (i = 0; i < pages; i++)
		if (i % 4)
			do_madvise(current->mm, addr + i * PAGE_SIZE, PAGE_SIZE,
				   MADV_DONTNEED);
	KUNIT_EXPECT_EQ(test, dom->nr_blocks, 8);
	KUNIT_EXPECT_EQ(test, dom->nr_parked, 6 * cohort_pages());

	cohort_test_set_adj(0);
	WRITE_ONCE(cohort_compact_delay_ms, 0);
	cohort_test_set_adj(900);
	WRITE_ONCE(cohort_compact_delay_ms, delay);
	flush_delayed_work(&dom->work);
	KUNIT_EXPECT_EQ(test, dom->nr_blocks, 2);
	KUNIT_EXPECT_LT(test, dom->nr_parked, cohort_pages());
	for (i = 0; i < pages; i += 4)
		cohort_test_verify(test, addr + i * PAGE_SIZE, 1);
}

/* Contiguous allocations and hwpoison find sets in a buffer, too. */
static void cohort_cpb_test_dissolve_range(struct kunit *test)
{
	struct cohort_domain *buffer = cohort_cpb_test_buffer();
	struct cohort_block *blk;
	unsigned int before;
	unsigned long pfn;

	cohort_cpb_test_fill(test, 2);
	before = buffer->nr_blocks;
	blk = list_last_entry(&buffer->list[__fls(buffer->nonempty)],
			      struct cohort_block, node);
	pfn = cohort_block_pfn(blk);
	cohort_dissolve_range(pfn + 3, pfn + 4);
	KUNIT_EXPECT_EQ(test, buffer->nr_blocks, before - 1);
	KUNIT_EXPECT_GE(test, cohort_cpb_test_buddy_order(pfn_to_page(pfn)),
			(int)cohort_order);
}

static struct kunit_case cohort_cpb_step_test_cases[] = {
	KUNIT_CASE(cohort_cpb_test_a1_cache_goes_past),
	KUNIT_CASE(cohort_cpb_test_a2_own_set),
	KUNIT_CASE(cohort_cpb_test_a2_interleaved),
	KUNIT_CASE(cohort_cpb_test_a2_shards),
	KUNIT_CASE(cohort_cpb_test_a3_set_from_buffer),
	KUNIT_CASE(cohort_cpb_test_a3_not_allowed),
	KUNIT_CASE(cohort_cpb_test_a4_refill),
	KUNIT_CASE(cohort_cpb_test_a4_remnant),
	KUNIT_CASE(cohort_cpb_test_a4_preference),
	KUNIT_CASE(cohort_cpb_test_a5_fall_through),
	KUNIT_CASE(cohort_cpb_test_a6_steal),
	KUNIT_CASE(cohort_cpb_test_a6_steal_from_buffer),
	KUNIT_CASE(cohort_cpb_test_excludes_region),
	KUNIT_CASE(cohort_cpb_test_orders),
	KUNIT_CASE(cohort_cpb_test_off_and_on),
	KUNIT_CASE(cohort_cpb_test_compaction_goes_past),
	KUNIT_CASE(cohort_cpb_test_background),
	KUNIT_CASE(cohort_cpb_test_dissolve_range),
	{}
};

static struct kunit_suite cohort_cpb_step_test_suite = {
	.name = "cohort_cpb_step",
	.suite_init = cohort_cpb_test_suite_init,
	.suite_exit = cohort_cpb_test_suite_exit,
	.init = cohort_cpb_test_init,
	.exit = cohort_test_exit,
	.test_cases = cohort_cpb_step_test_cases,
};
kunit_test_suite(cohort_cpb_step_test_suite);
