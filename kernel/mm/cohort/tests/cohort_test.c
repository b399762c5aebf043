// SPDX-License-Identifier: GPL-2.0
/*
 * Set-up and tear-down of the suites; see cohort_test.h.
 */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/rculist.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmstat.h>

#include "cohort_test.h"

/* The scheme before the suite that runs now. */
static bool cohort_test_was_on;

/* The process that cohort_test_map() made memory for last. */
static struct task_struct *cohort_test_mapper;

int cohort_test_suite_init(struct kunit_suite *suite)
{
	cohort_test_was_on = static_key_enabled(&cohort_region_key);
	return cohort_region_switch(true);
}

void cohort_test_suite_exit(struct kunit_suite *suite)
{
	cohort_region_switch(cohort_test_was_on);
}

int cohort_test_wait(struct kunit *test)
{
	struct task_struct *mapper = cohort_test_mapper;
	unsigned int i;

	if (!mapper)
		return 0;
	for (i = 0; i < 500 && !READ_ONCE(mapper->exit_state); i++)
		msleep(20);
	if (!READ_ONCE(mapper->exit_state))
		return -ETIMEDOUT;
	cohort_test_mapper = NULL;
	put_task_struct(mapper);
	return 0;
}

int cohort_test_init(struct kunit *test)
{
	struct cohort_test *ct = kunit_kzalloc(test, sizeof(*ct), GFP_KERNEL);
	int err;

	if (!ct)
		return -ENOMEM;
	err = cohort_test_wait(test);
	if (err)
		return err;
	ct->dom = cohort_domain_create(COHORT_PROCESS, GFP_KERNEL);
	if (!ct->dom)
		return -ENOMEM;
	test->priv = ct;
	/* Pages at hand are at hand on this CPU. */
	return set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
}

void cohort_test_exit(struct kunit *test)
{
	struct cohort_test *ct = test->priv;

	if (!ct)
		return;
	cohort_test_free(test, 0, ct->nr);
	if (ct->dom)
		cohort_domain_destroy(ct->dom);
}

unsigned int cohort_test_take(struct kunit *test, unsigned int nr)
{
	struct cohort_test *ct = test->priv;
	unsigned int first = ct->nr;

	KUNIT_ASSERT_LE(test, first + nr, COHORT_TEST_PAGES);
	while (nr--) {
		struct page *page;

		page = cohort_alloc_pages_noprof(GFP_HIGHUSER_MOVABLE,
						 numa_mem_id(), NULL, ct->dom);
		KUNIT_ASSERT_NOT_NULL(test, page);
		ct->page[ct->nr++] = page;
	}
	cohort_domain_drain(ct->dom);
	return first;
}

void cohort_test_drop(struct kunit *test, unsigned int first, unsigned int nr)
{
	struct cohort_test *ct = test->priv;
	unsigned int i;

	for (i = first; i < first + nr; i++) {
		if (ct->page[i])
			__free_page(ct->page[i]);
		ct->page[i] = NULL;
	}
}

void cohort_test_free(struct kunit *test, unsigned int first, unsigned int nr)
{
	struct cohort_test *ct = test->priv;

	cohort_test_drop(test, first, nr);
	if (ct->dom)
		cohort_domain_drain(ct->dom);
}

/* In an order that is the same each time: a step prime to the number. */
void cohort_test_free_shuffled(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	unsigned int i, at = 0;

	for (i = 0; i < ct->nr; i++) {
		cohort_test_drop(test, at, 1);
		at = (at + 101) % ct->nr;
	}
	cohort_test_free(test, 0, ct->nr);
}

struct cohort_block *cohort_test_block(struct page *page)
{
	return cohort_block_of(page_to_pfn(page));
}

struct cohort_domain *cohort_test_owner(struct page *page)
{
	struct cohort_block *blk = cohort_test_block(page);
	struct cohort_room *room = blk ? READ_ONCE(blk->room) : NULL;

	return room && cohort_owner_id(page_to_pfn(page)) ? room->dom : NULL;
}

/* Where the last page that is in use was taken. */
struct cohort_room *cohort_test_room(struct kunit *test)
{
	struct cohort_test *ct = test->priv;
	struct cohort_room *room;
	unsigned int i = ct->nr;

	while (i && !ct->page[i - 1])
		i--;
	KUNIT_ASSERT_GT(test, i, 0);
	room = cohort_room_of(ct->dom, page_zone(ct->page[i - 1]));
	KUNIT_ASSERT_NOT_NULL(test, room);
	return room;
}

int cohort_test_buddy_order(struct page *page)
{
	unsigned long pfn = page_to_pfn(page);
	int order;

	drain_all_pages(NULL);
	for (order = 0; order < NR_PAGE_ORDERS; order++) {
		struct page *head = pfn_to_page(round_down(pfn, 1UL << order));

		if (PageBuddy(head) && buddy_order(head) >= order)
			return buddy_order(head);
	}
	return -1;
}

void cohort_test_context(struct alloc_context *ac, gfp_t gfp)
{
	*ac = (struct alloc_context){ };
	ac->zonelist = node_zonelist(numa_mem_id(), gfp);
	ac->highest_zoneidx = gfp_zone(gfp);
	ac->migratetype = gfp_migratetype(gfp);
	ac->preferred_zoneref = first_zones_zonelist(ac->zonelist,
						     ac->highest_zoneidx, NULL);
}

void cohort_test_boost(bool on)
{
	struct zone *zone;

	for_each_populated_zone(zone)
		zone->watermark_boost = on ? zone_page_state(zone, NR_FREE_PAGES) : 0;
}

struct page *cohort_test_breach(gfp_t gfp, unsigned int order)
{
	struct alloc_context ac;

	cohort_test_context(&ac, gfp);
	return __cohort_breach(gfp, order, 0, &ac);
}

struct page *cohort_test_breach_last(gfp_t gfp, unsigned int order)
{
	struct alloc_context ac;

	cohort_test_context(&ac, gfp);
	return __cohort_breach(gfp & ~__GFP_DIRECT_RECLAIM, order,
			       ALLOC_WMARK_MIN | COHORT_ALLOC_LAST, &ac);
}

void cohort_test_gets(struct kunit *test, struct page *page, unsigned int order)
{
	KUNIT_ASSERT_NOT_NULL(test, page);
	__free_pages(page, order);
}

void cohort_test_keep(struct list_head *pages, struct page *page, unsigned int order)
{
	set_page_private(page, order);
	list_add(&page->lru, pages);
}

void cohort_test_release(struct list_head *pages, void (*give)(struct page *, unsigned int))
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, pages, lru) {
		unsigned int order = page_private(page);

		list_del(&page->lru);
		set_page_private(page, 0);
		give(page, order);
	}
}

void cohort_test_breach_all(struct list_head *pages, gfp_t gfp, unsigned int order)
{
	struct page *page;

	while ((page = cohort_test_breach(gfp, order)))
		cohort_test_keep(pages, page, order);
}

unsigned int cohort_test_at_hand(unsigned int id)
{
	unsigned int cpu, i, nr = 0;
	struct zone *zone;

	for_each_populated_zone(zone) {
		for_each_possible_cpu(cpu) {
			struct cohort_magazine *mag;

			mag = per_cpu_ptr(zone->cohort->magazine, cpu);
			for (i = 0; i < COHORT_SLOTS; i++)
				if (READ_ONCE(mag->slot[i].id) == id)
					nr += READ_ONCE(mag->slot[i].nr);
		}
	}
	return nr;
}

unsigned long cohort_test_domains(void)
{
	struct cohort_domain *dom;
	unsigned long nr = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(dom, &cohort_domains, all)
		nr += cohort_domain_free(dom);
	rcu_read_unlock();
	return nr;
}

/* The count of a zone is the sum of its rooms' counts, and of the blocks' lists. */
void cohort_test_recount(struct kunit *test, struct zone *zone, unsigned long isolated)
{
	unsigned long free = 0, pieces = 0, soft, flags;
	struct cohort_room *room;
	unsigned int i;

	spin_lock_irqsave(&zone->lock, flags);
	for (i = 0; i < COHORT_NR_KINDS; i++) {
		list_for_each_entry(room, &zone->cohort->rooms[i], breach) {
			cohort_check_room(room);
			free += room->nr_free;
		}
	}
	for (i = 0; i < COHORT_MAX_ORDER; i++)
		pieces += zone->cohort->pieces[i] << i;
	soft = zone->cohort_soft;
	spin_unlock_irqrestore(&zone->lock, flags);
	KUNIT_EXPECT_EQ(test, soft + isolated, free);
	KUNIT_EXPECT_EQ(test, pieces, free);
}

long cohort_test_isolated(void)
{
	long nr = global_node_page_state_pages(NR_ISOLATED_ANON) +
		  global_node_page_state_pages(NR_ISOLATED_FILE);
	struct pglist_data *pgdat;
	int cpu;

	/* Other than the sums, with what each CPU has not added yet. */
	for_each_online_pgdat(pgdat) {
		for_each_online_cpu(cpu) {
			s8 *diff = per_cpu_ptr(pgdat->per_cpu_nodestats, cpu)->vm_node_stat_diff;

			nr += diff[NR_ISOLATED_ANON] + diff[NR_ISOLATED_FILE];
		}
	}
	return nr;
}

unsigned long cohort_test_map(struct kunit *test, unsigned int pages)
{
	unsigned long addr;

	addr = kunit_vm_mmap(test, NULL, 0, (unsigned long)pages << PAGE_SHIFT,
			     PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, addr, 0);
	KUNIT_ASSERT_LT(test, addr, (unsigned long)TASK_SIZE);
	if (!cohort_test_mapper)
		cohort_test_mapper = get_task_struct(current);
	return addr;
}

/* Each page says its own address, so that a lost or swapped one shows. */
void cohort_test_touch(struct kunit *test, unsigned long addr, unsigned int pages)
{
	for (; pages--; addr += PAGE_SIZE)
		KUNIT_ASSERT_EQ(test, put_user(addr, (unsigned long __user *)addr), 0);
}

void cohort_test_verify(struct kunit *test, unsigned long addr, unsigned int pages)
{
	unsigned long word, wrong = 0;

	for (; pages--; addr += PAGE_SIZE)
		if (get_user(word, (unsigned long __user *)addr) || word != addr)
			wrong++;
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

/* The process has had its pages in the small domain: the next ones are its own. */
void cohort_test_grow_up(struct kunit *test)
{
	KUNIT_ASSERT_NOT_NULL(test, current->mm);
	KUNIT_ASSERT_NOT_NULL(test, cohort_anon_domain(current->mm, 0));
	KUNIT_ASSERT_NOT_NULL(test, current->mm->cohort);
	current->mm->cohort->nr_first = cohort_pages();
}

struct page *cohort_test_page_at(struct kunit *test, unsigned long addr)
{
	struct page *page = NULL;

	KUNIT_ASSERT_EQ(test, get_user_pages_fast(addr, 1, 0, &page), 1);
	put_page(page);
	return page;
}

struct cohort_domain *cohort_test_domain_at(struct kunit *test, unsigned long addr)
{
	return cohort_test_owner(cohort_test_page_at(test, addr));
}

/* As a write to /proc/self/oom_score_adj; every case is a process of its own. */
void cohort_test_set_adj(int oom_score_adj)
{
	current->signal->oom_score_adj = oom_score_adj;
	cohort_class_changed(current);
}

/* A mapping of a file on a file system, as far as the cache's domain looks. */
struct address_space *cohort_test_mapping(struct kunit *test)
{
	struct super_block *sb = kunit_kzalloc(test, sizeof(*sb), GFP_KERNEL);
	struct inode *inode = kunit_kzalloc(test, sizeof(*inode), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sb);
	KUNIT_ASSERT_NOT_NULL(test, inode);
	address_space_init_once(&inode->i_data);
	spin_lock_init(&inode->i_lock);
	inode->i_sb = sb;
	inode->i_mapping = &inode->i_data;
	inode->i_data.host = inode;
	mapping_set_gfp_mask(&inode->i_data, GFP_HIGHUSER_MOVABLE);
	return &inode->i_data;
}
