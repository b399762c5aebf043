// SPDX-License-Identifier: GPL-2.0
/*
 * Layouts of virtual memory nodes: what is refused, and how memory maps that
 * machines really have are split; which requests stay in their node, and which
 * look for what their node has lent.
 */
#include <kunit/test.h>
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/migrate_mode.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/swap.h>

#include "../cohort.h"
#include "../host/hugetlb.h"
#include "../host/khugepaged.h"
#include "../host/migrate.h"
#include "../lib/arith_vnode.h"
#include "cohort_vnode_test.h"

#define ALIGN_TO	SZ_4M

static const char *cohort_vnode_test_split(struct kunit *test, const char *text,
					   const struct cohort_span *ram, unsigned int nr,
					   u64 *bound)
{
	struct cohort_layout *layout = kunit_kzalloc(test, sizeof(*layout), GFP_KERNEL);
	const char *why;

	KUNIT_ASSERT_NOT_NULL(test, layout);
	why = cohort_layout_parse(text, layout);
	KUNIT_ASSERT_NULL(test, why);
	return cohort_layout_split(layout, ram, nr, ALIGN_TO, bound);
}

/* Huge pages, balancing and larger fragments of sockets have a fallback; nothing else has. */
static void cohort_vnode_test_stays(struct kunit *test)
{
	const gfp_t piece = (GFP_KERNEL & ~__GFP_DIRECT_RECLAIM) | __GFP_COMP | __GFP_NOWARN;
	const gfp_t fragment = piece | __GFP_NORETRY;
	const gfp_t balancing = (GFP_HIGHUSER_MOVABLE | __GFP_THISNODE) & ~__GFP_RECLAIM;

	KUNIT_EXPECT_TRUE(test, cohort_vnode_gfp_stays(GFP_KERNEL, 0));
	KUNIT_EXPECT_TRUE(test, cohort_vnode_gfp_stays(GFP_TRANSHUGE_LIGHT, 0));
	KUNIT_EXPECT_TRUE(test, cohort_vnode_gfp_stays(balancing, 0));
	KUNIT_EXPECT_TRUE(test, cohort_vnode_gfp_stays(fragment, 0));
	KUNIT_EXPECT_TRUE_MSG(test, cohort_vnode_gfp_stays(piece, 3), "of a socket");
	KUNIT_EXPECT_FALSE(test, cohort_vnode_gfp_stays(piece, 0));
	KUNIT_EXPECT_FALSE(test, cohort_vnode_gfp_stays(GFP_ATOMIC | __GFP_NOWARN, 1));
	KUNIT_EXPECT_FALSE(test, cohort_vnode_gfp_stays(GFP_ATOMIC, 0));
	KUNIT_EXPECT_FALSE(test, cohort_vnode_gfp_stays(GFP_NOWAIT, 0));
	KUNIT_EXPECT_FALSE_MSG(test, cohort_vnode_gfp_stays(GFP_NOFS, 0), "of a journal");
	KUNIT_EXPECT_FALSE(test, cohort_vnode_gfp_stays(GFP_NOIO | __GFP_NOFAIL, 0));
	KUNIT_EXPECT_TRUE(test, cohort_vnode_gfp_stays(GFP_HIGHUSER_MOVABLE & ~__GFP_FS, 0));
	KUNIT_EXPECT_FALSE_MSG(test, cohort_vnode_gfp_stays(GFP_NOFS | __GFP_HARDWALL, 0),
			       "of a journal in bulk, beside cpusets");
	KUNIT_EXPECT_FALSE(test, cohort_vnode_gfp_stays(GFP_ATOMIC | __GFP_HARDWALL, 0));
	KUNIT_EXPECT_FALSE_MSG(test, cohort_vnode_gfp_stays(GFP_NOFS | __GFP_NORETRY, 0),
			       "with a pool behind it");
	KUNIT_EXPECT_FALSE_MSG(test, cohort_vnode_gfp_stays(GFP_KERNEL | __GFP_HIGHMEM, 0),
			       "of each CPU");
	KUNIT_EXPECT_TRUE_MSG(test, cohort_vnode_gfp_stays(GFP_HIGHUSER, 0), "of a pipe");
	KUNIT_EXPECT_FALSE_MSG(test, cohort_vnode_gfp_stays(GFP_NOFS | __GFP_WRITE, 0),
			       "a directory's page on f2fs");
}

static void cohort_vnode_test_refused(struct kunit *test)
{
	static const char *const texts[] = {
		"", "trusted", "trusted:512M", "trusted:512M,untrusted:1G",
		"trusted:rest,untrusted:rest", "trusted:0M,untrusted:rest",
		"trusted:512M,trusted:rest", "trusted:512,untrusted:rest",
		"trusted:100%,untrusted:rest", "Trusted:512M,untrusted:rest",
		"trusted:512M,untrusted:rest,", "lend:512M,untrusted:rest",
		"a:1M,b:1M,c:1M,d:1M,e:1M,f:1M,g:1M,h:1M,i:rest",
	};
	struct cohort_layout *layout = kunit_kzalloc(test, sizeof(*layout), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, layout);
	for (i = 0; i < ARRAY_SIZE(texts); i++)
		KUNIT_EXPECT_NOT_NULL_MSG(test, cohort_layout_parse(texts[i], layout),
					  "%s was taken", texts[i]);
}

/* 1 GiB below the first megabyte's hole: the lab's small machine. */
static void cohort_vnode_test_one_gig(struct kunit *test)
{
	static const struct cohort_span ram[] = {
		{ 0x1000, 0x9f000 }, { SZ_1M, SZ_1G - SZ_128K },
	};
	u64 bound[COHORT_VNODE_MAX + 1];

	KUNIT_EXPECT_NULL(test, cohort_vnode_test_split(test, "a:256M,b:25%,c:rest", ram, 2, bound));
	KUNIT_EXPECT_EQ(test, bound[0], 0x1000ULL);
	KUNIT_EXPECT_EQ(test, bound[1], (u64)SZ_256M);
	KUNIT_EXPECT_EQ(test, bound[2], (u64)SZ_512M);
	KUNIT_EXPECT_EQ(test, bound[3], (u64)SZ_1G - SZ_128K);
}

/* 4 GiB with a PCI hole below 4 GiB: the size counts memory, not addresses. */
static void cohort_vnode_test_four_gig(struct kunit *test)
{
	static const struct cohort_span ram[] = {
		{ 0x1000, 0x9f000 }, { SZ_1M, SZ_2G },
		{ SZ_4G, SZ_4G + SZ_2G },
	};
	u64 bound[COHORT_VNODE_MAX + 1], has;

	KUNIT_EXPECT_NULL(test, cohort_vnode_test_split(test, "a:rest,b:1G", ram, 3, bound));
	KUNIT_EXPECT_EQ(test, bound[1] % ALIGN_TO, 0ULL);
	has = cohort_ram_between(ram, 3, bound[1], bound[2]);
	KUNIT_EXPECT_LE(test, has, (u64)SZ_1G + ALIGN_TO);
	KUNIT_EXPECT_GE(test, has, (u64)SZ_1G - ALIGN_TO);
	KUNIT_EXPECT_NULL(test, cohort_vnode_test_split(test, "a:3G,b:rest", ram, 3, bound));
	KUNIT_EXPECT_GT(test, bound[1], (u64)SZ_4G);
	has = cohort_ram_between(ram, 3, bound[0], bound[1]);
	KUNIT_EXPECT_LE(test, has, 3ULL * SZ_1G + ALIGN_TO);
	KUNIT_EXPECT_GE(test, has, 3ULL * SZ_1G - ALIGN_TO);
}

/* Two physical nodes: no piece spans them or two virtual nodes. */
static void cohort_vnode_test_real_numa(struct kunit *test)
{
	static const struct cohort_span ram[] = { { 0, SZ_4G } };
	static const u64 phys[] = { 0, SZ_1G, SZ_2G, SZ_4G };
	u64 bound[COHORT_VNODE_MAX + 1], at, end, sum[2] = {};
	unsigned int i, node, pieces = 0;

	KUNIT_EXPECT_NULL(test, cohort_vnode_test_split(test, "a:1536M,b:rest", ram, 1, bound));
	for (i = 0; i + 1 < ARRAY_SIZE(phys); i++) {
		for (at = phys[i]; at < phys[i + 1]; at = end, pieces++) {
			end = phys[i + 1];
			node = cohort_layout_piece(bound, 2, at, &end);
			KUNIT_ASSERT_GT(test, end, at);
			KUNIT_EXPECT_LE(test, end, phys[i + 1]);
			sum[node] += end - at;
		}
	}
	KUNIT_EXPECT_EQ(test, pieces, 4u);
	KUNIT_EXPECT_EQ(test, sum[0], 1536ULL * SZ_1M);
	KUNIT_EXPECT_EQ(test, sum[1], 2560ULL * SZ_1M);
}

static void cohort_vnode_test_too_big(struct kunit *test)
{
	static const struct cohort_span ram[] = { { 0, SZ_1G } };
	u64 bound[COHORT_VNODE_MAX + 1];

	KUNIT_EXPECT_NOT_NULL(test, cohort_vnode_test_split(test, "a:1G,b:rest", ram, 1, bound));
	KUNIT_EXPECT_NOT_NULL(test, cohort_vnode_test_split(test, "a:1000M,b:rest", ram, 1, bound));
	KUNIT_EXPECT_NOT_NULL(test, cohort_vnode_test_split(test, "a:60%,b:50%,c:rest", ram, 1, bound));
	KUNIT_EXPECT_NOT_NULL(test, cohort_vnode_test_split(test, "a:16M,b:rest", ram, 1, bound));
	KUNIT_EXPECT_NULL(test, cohort_vnode_test_split(test, "a:992M,b:rest", ram, 1, bound));
}

static void cohort_vnode_test_unusable(struct kunit *test)
{
	static const u64 blocks[] = { 8, 4, 0, 0, 1, 1, 1 };
	static const u64 none[7];

	KUNIT_EXPECT_EQ(test, cohort_layout_unusable(blocks, 7, 0), 0u);
	KUNIT_EXPECT_EQ(test, cohort_layout_unusable(blocks, 7, 4), 13u);
	KUNIT_EXPECT_EQ(test, cohort_layout_unusable(blocks, 7, 6), 50u);
	KUNIT_EXPECT_EQ(test, cohort_layout_unusable(blocks, 7, 7), 100u);
	KUNIT_EXPECT_EQ(test, cohort_layout_unusable(none, 7, 4), 0u);
}

/* A role with all memory, where no layout gives any; other tasks may come upon it, too. */
static struct cohort_vnode cohort_vnode_test_owner;

static void cohort_vnode_test_mark(struct kunit *test, struct page *page)
{
	unsigned long pfn = page_to_pfn(page), *map = cohort_lent_map(pfn);

	KUNIT_ASSERT_NOT_NULL(test, map);
	set_bit(cohort_span_bit(pfn), map);
}

/* Does a request look for lent pages?  A look moves the hand to a frame of the node. */
static bool cohort_vnode_test_looks(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnode_test_owner;

	WRITE_ONCE(vn->hand, ULONG_MAX);
	/* One that may not wake kswapd queues no work, which would look, too. */
	KUNIT_EXPECT_FALSE(test, __cohort_vnode_take_back(GFP_KERNEL & ~__GFP_KSWAPD_RECLAIM, 0,
							  &vn->nodes));
	return READ_ONCE(vn->hand) != ULONG_MAX;
}

/* A role that has lent one page, which is on no LRU list and cannot be dropped. */
static struct page *cohort_vnode_test_lends(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	struct page *page;

	mutex_lock(&cohort_mutex);
	KUNIT_EXPECT_EQ(test, cohort_table_lend(cohort_vnode_returned), 0);
	mutex_unlock(&cohort_mutex);
	page = alloc_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	cohort_vnode_test_mark(test, page);
	vn->nodes = node_states[N_MEMORY];
	vn->nid = first_node(vn->nodes);
	atomic_long_set(&vn->lent, 1);
	WRITE_ONCE(vn->barren, jiffies);
	cohort_vnode_set_default(vn);
	return page;
}

static void cohort_vnode_test_lends_end(struct kunit *test, struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	cohort_vnode_set_default(NULL);
	atomic_long_set(&cohort_vnode_test_owner.lent, 0);
	KUNIT_EXPECT_TRUE(test, test_and_clear_bit(cohort_span_bit(pfn), cohort_lent_map(pfn)));
	__free_page(page);
}

/* A look that brought nothing back is not repeated by the next request. */
static void cohort_vnode_test_barren(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	unsigned long start;
	struct page *page;

	if (cohort_nr_vnodes)
		kunit_skip(test, "there is a layout");
	page = cohort_vnode_test_lends(test);
	start = READ_ONCE(vn->barren);

	KUNIT_EXPECT_TRUE(test, cohort_vnode_test_looks(test));
	KUNIT_EXPECT_TRUE(test, time_after(READ_ONCE(vn->barren), start));
	/* A busy host may take longer than that to come to the second one. */
	WRITE_ONCE(vn->barren, jiffies + 600 * HZ);
	KUNIT_EXPECT_FALSE(test, cohort_vnode_test_looks(test));
	WRITE_ONCE(vn->barren, jiffies);
	KUNIT_EXPECT_TRUE_MSG(test, cohort_vnode_test_looks(test), "the time is over");

	cohort_vnode_test_lends_end(test, page);
}

/* A clean page of a file without storage. */
static struct page *cohort_vnode_test_cached(struct kunit *test, struct inode *inode)
{
	struct folio *folio = filemap_alloc_folio(GFP_HIGHUSER_MOVABLE, 0);

	KUNIT_ASSERT_NOT_NULL(test, folio);
	KUNIT_ASSERT_EQ(test, filemap_add_folio(inode->i_mapping, folio, 0, GFP_KERNEL), 0);
	folio_mark_uptodate(folio);
	folio_unlock(folio);
	folio_put(folio);
	lru_add_drain_all();
	return folio_page(folio, 0);
}

/* A file without storage; @file is what keeps its file system. */
static struct inode *cohort_vnode_test_file(struct kunit *test, struct file **file)
{
	static const struct file_operations none;
	struct inode *inode;

	*file = anon_inode_getfile("cohort_vnode_test", &none, NULL, O_RDONLY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(*file));
	inode = new_inode(file_inode(*file)->i_sb);
	KUNIT_ASSERT_NOT_NULL(test, inode);
	return inode;
}

static void cohort_vnode_test_file_end(struct inode *inode, struct file *file)
{
	clear_nlink(inode);
	iput(inode);
	fput(file);
}

/* Nor is one that brought a page back, and found that the others are held. */
static void cohort_vnode_test_trickle(struct kunit *test)
{
	const gfp_t gfp = GFP_KERNEL & ~__GFP_KSWAPD_RECLAIM;
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	unsigned long start, pfn;
	struct inode *inode;
	struct page *page;
	struct file *file;

	if (cohort_nr_vnodes)
		kunit_skip(test, "there is a layout");
	inode = cohort_vnode_test_file(test, &file);
	page = cohort_vnode_test_lends(test);
	pfn = page_to_pfn(cohort_vnode_test_cached(test, inode));
	cohort_vnode_test_mark(test, pfn_to_page(pfn));
	atomic_long_set(&vn->lent, 2);
	start = READ_ONCE(vn->barren);

	/* What is to be written is refused for dirty pages, beside free memory. */
	KUNIT_EXPECT_FALSE(test, __cohort_vnode_take_back(gfp | __GFP_WRITE, 0, &vn->nodes));
	KUNIT_EXPECT_TRUE(test, __cohort_vnode_take_back(gfp, 0, &vn->nodes));
	KUNIT_EXPECT_TRUE(test, time_after(READ_ONCE(vn->barren), start));

	clear_bit(cohort_span_bit(pfn), cohort_lent_map(pfn));
	cohort_vnode_test_lends_end(test, page);
	cohort_vnode_test_file_end(inode, file);
}

struct cohort_vnode *cohort_vnode_test_layout(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnodes[0];

	if (cohort_nr_vnodes || system_state >= SYSTEM_FREEING_INITMEM)
		kunit_skip(test, "there is a layout, or none may be made any more");
	mutex_lock(&cohort_mutex);
	KUNIT_EXPECT_EQ(test, cohort_table_lend(cohort_vnode_returned), 0);
	mutex_unlock(&cohort_mutex);
	vn->nodes = node_states[N_MEMORY];
	vn->nid = first_node(vn->nodes);
	atomic_long_set(&vn->lent, 0);
	cohort_nr_vnodes = 1;
	cohort_vnode_set_default(vn);
	cohort_owner_switch(&cohort_lend_key, true);
	return vn;
}

void cohort_vnode_test_layout_end(void)
{
	cohort_owner_switch(&cohort_lend_key, false);
	cohort_vnode_set_default(NULL);
	cohort_nr_vnodes = 0;
}

/* A page that is lent and goes bad is lent no more: it never reaches the free path. */
static void cohort_vnode_test_goes_bad(struct kunit *test)
{
	struct cohort_vnode *vn;
	struct inode *inode;
	struct file *file;
	unsigned long pfn;
	int gone;

	if (!IS_ENABLED(CONFIG_MEMORY_FAILURE))
		kunit_skip(test, "no CONFIG_MEMORY_FAILURE");
	vn = cohort_vnode_test_layout(test);
	inode = cohort_vnode_test_file(test, &file);
	for (gone = 0; gone < 2; gone++) {
		pfn = page_to_pfn(cohort_vnode_test_cached(test, inode));
		cohort_vnode_test_mark(test, pfn_to_page(pfn));
		atomic_long_set(&vn->lent, 1);
		KUNIT_EXPECT_EQ(test, gone ? memory_failure(pfn, MF_SW_SIMULATED) :
					     soft_offline_page(pfn, 0), 0);
		KUNIT_EXPECT_TRUE(test, PageHWPoison(pfn_to_page(pfn)));
		KUNIT_EXPECT_EQ(test, inode->i_mapping->nrpages, 0UL);
		KUNIT_EXPECT_EQ(test, atomic_long_read(&vn->lent), 0L);
		KUNIT_EXPECT_FALSE(test, test_bit(cohort_span_bit(pfn), cohort_lent_map(pfn)));
		KUNIT_EXPECT_EQ(test, unpoison_memory(pfn), 0);
		KUNIT_EXPECT_EQ_MSG(test, atomic_long_read(&vn->lent), 0L, "it came back twice");
	}
	cohort_vnode_test_file_end(inode, file);
	cohort_vnode_test_layout_end();
}

void cohort_vnode_test_process(bool on)
{
	static struct mm_struct mm = { .mm_users = ATOMIC_INIT(1), .mm_count = ATOMIC_INIT(1) };

	if (on) {
		local_irq_disable();
		current->flags &= ~PF_KTHREAD;
		current->mm = &mm;
	} else {
		current->mm = NULL;
		current->flags |= PF_KTHREAD;
		local_irq_enable();
	}
}

nodemask_t *cohort_vnode_test_bind(gfp_t gfp, int *nid, nodemask_t *policy, nodemask_t *both)
{
	nodemask_t *nodes;

	cohort_vnode_test_process(true);
	nodes = __cohort_vnode_bind(gfp, 0, nid, policy, both);
	cohort_vnode_test_process(false);
	return nodes;
}

/*
 * A policy of many preferred nodes tries these without waiting: no way out for the kernel
 * memory of a process, which no flag tells from other requests that may not wait.
 */
static void cohort_vnode_test_preferred_many(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	const gfp_t preferred = (GFP_KERNEL | __GFP_NOWARN) & ~__GFP_DIRECT_RECLAIM;
	int nid = MAX_NUMNODES - 1;
	nodemask_t other = nodemask_of_node(MAX_NUMNODES - 1), both;

	if (cohort_nr_vnodes || MAX_NUMNODES == 1)
		kunit_skip(test, "there is a layout, or only one node");
	vn->nodes = nodemask_of_node(0);
	vn->nid = 0;
	cohort_vnode_set_default(vn);
	KUNIT_EXPECT_FALSE(test, cohort_vnode_gfp_stays(preferred, 0));
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_test_bind(preferred, &nid, &other, &both), &vn->nodes);
	KUNIT_EXPECT_EQ(test, nid, 0);
	nid = MAX_NUMNODES - 1;
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_test_bind(GFP_KERNEL, &nid, &other, &both), &vn->nodes);
	KUNIT_EXPECT_EQ(test, nid, 0);
	cohort_vnode_set_default(NULL);
}

/*
 * Pages of a process that are sent to a node of another role go to one of its own, whichever
 * process sends them, also where a page is beside a pool of huge ones; and there they may stay.
 */
static void cohort_vnode_test_sent(struct kunit *test)
{
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	const int other = MAX_NUMNODES - 1;
	nodemask_t mask = nodemask_of_node(other), *nodes;
	int beside = other;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	if (cohort_nr_vnodes || !other)
		kunit_skip(test, "there is a layout, or only one node");
	vn->nodes = nodemask_of_node(0);
	vn->nid = 0;
	cohort_vnode_set_default(vn);
	cohort_vnode_test_process(true);
	nodes = __cohort_vnode_huge(&beside, &mask);
	cohort_vnode_test_process(false);
	KUNIT_EXPECT_EQ(test, beside, 0);
	KUNIT_EXPECT_NULL(test, nodes);
	KUNIT_EXPECT_EQ(test, __cohort_vnode_sent(mm, other), 0);
	KUNIT_EXPECT_EQ(test, __cohort_vnode_sent(mm, 0), 0);
	KUNIT_EXPECT_PTR_EQ(test, __cohort_vnode_target(MR_COMPACTION, 0, other, &mask), &mask);
	cohort_vnode_set_default(NULL);
}

/* Pieces that a driver takes of the node nearest to it; a node by name for the kernel's own. */
static void cohort_vnode_test_strays(struct kunit *test)
{
	const gfp_t driver = GFP_USER | __GFP_THISNODE | __GFP_NORETRY | __GFP_NOWARN |
			     __GFP_NOMEMALLOC;
	const gfp_t own = GFP_KERNEL | __GFP_THISNODE | __GFP_NORETRY;
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	const int other = MAX_NUMNODES - 1;
	int piece = other, page = other, slab = other;
	nodemask_t both;

	if (cohort_nr_vnodes || !other)
		kunit_skip(test, "there is a layout, or only one node");
	vn->nodes = nodemask_of_node(0);
	vn->nid = 0;
	cohort_vnode_set_default(vn);
	cohort_vnode_test_process(true);
	__cohort_vnode_bind(driver, 4, &piece, NULL, &both);
	__cohort_vnode_bind(driver, 0, &page, NULL, &both);
	__cohort_vnode_bind(own, 3, &slab, NULL, &both);
	cohort_vnode_test_process(false);
	KUNIT_EXPECT_EQ(test, piece, 0);
	KUNIT_EXPECT_EQ(test, page, other);
	KUNIT_EXPECT_EQ(test, slab, other);
	cohort_vnode_set_default(NULL);
}

/* A node that SLUB asks for, for a process: what may not wait has none of another role's. */
static void cohort_vnode_test_named(struct kunit *test)
{
	const gfp_t first = GFP_NOWAIT | __GFP_THISNODE, larger = first | __GFP_NORETRY;
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	int other = MAX_NUMNODES - 1, own = 0;
	nodemask_t both, *nodes[5];

	if (cohort_nr_vnodes || !other)
		kunit_skip(test, "there is a layout, or only one node");
	vn->nodes = nodemask_of_node(0);
	vn->nid = 0;
	cohort_vnode_set_default(vn);
	nodes[0] = __cohort_vnode_bind(larger, 3, &other, NULL, &both);
	cohort_vnode_test_process(true);
	nodes[1] = __cohort_vnode_bind(larger, 3, &other, NULL, &both);
	nodes[2] = __cohort_vnode_bind(first, 0, &other, NULL, &both);
	nodes[3] = __cohort_vnode_bind(first, 0, &own, NULL, &both);
	nodes[4] = __cohort_vnode_bind(GFP_KERNEL | __GFP_THISNODE, 0, &other, NULL, &both);
	cohort_vnode_test_process(false);
	KUNIT_EXPECT_NULL_MSG(test, nodes[0], "a thread of the kernel");
	KUNIT_EXPECT_PTR_EQ(test, nodes[1], &vn->nodes);
	KUNIT_EXPECT_PTR_EQ(test, nodes[2], &vn->nodes);
	KUNIT_EXPECT_NULL_MSG(test, nodes[3], "its own node");
	KUNIT_EXPECT_NULL_MSG(test, nodes[4], "a second request does not follow");
	KUNIT_EXPECT_EQ(test, other, MAX_NUMNODES - 1);
	cohort_vnode_set_default(NULL);
}

/* A role that was given, or a client's right that was taken, while a program was made ready. */
static void cohort_vnode_test_exec(struct kunit *test)
{
	struct mm_struct *new = kunit_kzalloc(test, sizeof(*new), GFP_KERNEL);
	struct mm_struct *old = mm_alloc();

	KUNIT_ASSERT_NOT_NULL(test, new);
	KUNIT_ASSERT_NOT_NULL(test, old);
	old->flags |= 2UL << COHORT_VNODE_SHIFT;
	new->flags = 1UL << COHORT_VNODE_SHIFT | BIT(COHORT_VNODE_LEFT) | 1;
	__cohort_mm_inherit(current, new);
	KUNIT_EXPECT_EQ_MSG(test, cohort_vnode_number(new), 1u, "a thread of the kernel has none");
	kthread_use_mm(old);
	__cohort_mm_inherit(current, new);
	kthread_unuse_mm(old);
	KUNIT_EXPECT_EQ(test, cohort_vnode_number(new), 2u);
	KUNIT_EXPECT_FALSE(test, test_bit(COHORT_VNODE_LEFT, &new->flags));
	KUNIT_EXPECT_EQ(test, new->flags & 1, 1UL);
	mmput(old);
}

/* Pages that a process has in another role's node do not draw huge ones there. */
static void cohort_vnode_test_collapse(struct kunit *test)
{
	u32 *load = kunit_kcalloc(test, MAX_NUMNODES, sizeof(*load), GFP_KERNEL);
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	const int other = MAX_NUMNODES - 1;

	KUNIT_ASSERT_NOT_NULL(test, load);
	KUNIT_ASSERT_NOT_NULL(test, mm);
	if (cohort_nr_vnodes || !other)
		kunit_skip(test, "there is a layout, or only one node");
	vn->nodes = nodemask_of_node(0);
	vn->nid = 0;
	cohort_vnode_set_default(vn);
	load[other] = 5;
	__cohort_vnode_collapse(mm, load);
	KUNIT_EXPECT_EQ(test, load[other], 0u);
	KUNIT_EXPECT_EQ(test, load[0], 1u);
	load[0] = 3;
	load[other] = 5;
	__cohort_vnode_collapse(mm, load);
	KUNIT_EXPECT_EQ(test, load[other], 0u);
	KUNIT_EXPECT_EQ(test, load[0], 3u);
	cohort_vnode_set_default(NULL);
}

/* A role's last node with memory is not to go offline, another one is. */
static void cohort_vnode_test_last_memory(struct kunit *test)
{
	struct cohort_vnode *vn = &cohort_vnode_test_owner;
	int nid = first_node(node_states[N_MEMORY]);

	vn->nodes = nodemask_of_node(nid);
	KUNIT_EXPECT_TRUE(test, cohort_vnode_needs(vn, nid, N_MEMORY));
	KUNIT_EXPECT_TRUE(test, cohort_vnode_needs(vn, nid, N_NORMAL_MEMORY));
	if (MAX_NUMNODES == 1 || node_state(MAX_NUMNODES - 1, N_MEMORY))
		return;
	node_set(MAX_NUMNODES - 1, vn->nodes);
	KUNIT_EXPECT_TRUE_MSG(test, cohort_vnode_needs(vn, nid, N_MEMORY),
			      "the other one has no memory");
	KUNIT_EXPECT_FALSE(test, cohort_vnode_needs(vn, MAX_NUMNODES - 1, N_MEMORY));
}

/* A thread of the kernel has no role of its own to which it would cut a policy. */
static void cohort_vnode_test_foreign(struct kunit *test)
{
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	struct cohort_vnode *vn = &cohort_vnode_test_owner;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	if (cohort_nr_vnodes)
		kunit_skip(test, "there is a layout");
	cohort_vnode_set_default(vn);
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_nodes(mm, true), &vn->nodes);
	KUNIT_EXPECT_PTR_EQ(test, cohort_vnode_nodes(mm, false), &vn->nodes);
	cohort_vnode_set_default(NULL);
}

/* What has no role of its own leaves the default one when that becomes another. */
static void cohort_vnode_test_default_moves(struct kunit *test)
{
	struct mm_struct *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, mm);
	if (cohort_nr_vnodes)
		kunit_skip(test, "there is a layout");
	cohort_vnode_set_default(&cohort_vnode_test_owner);
	cohort_vnode_set_default(NULL);
	KUNIT_EXPECT_TRUE(test, cohort_vnode_has_left(current, mm));
	mm->flags = 1UL << COHORT_VNODE_SHIFT;
	KUNIT_EXPECT_EQ(test, cohort_vnode_number(mm), 1u);
	KUNIT_EXPECT_FALSE(test, cohort_vnode_has_left(current, mm));
	set_bit(COHORT_VNODE_LEFT, &mm->flags);
	KUNIT_EXPECT_TRUE(test, cohort_vnode_has_left(current, mm));
	KUNIT_EXPECT_EQ(test, cohort_vnode_number(mm), 1u);
}

static struct kunit_case cohort_vnode_test_cases[] = {
	KUNIT_CASE(cohort_vnode_test_stays),
	KUNIT_CASE(cohort_vnode_test_refused),
	KUNIT_CASE(cohort_vnode_test_one_gig),
	KUNIT_CASE(cohort_vnode_test_four_gig),
	KUNIT_CASE(cohort_vnode_test_real_numa),
	KUNIT_CASE(cohort_vnode_test_too_big),
	KUNIT_CASE(cohort_vnode_test_unusable),
	KUNIT_CASE(cohort_vnode_test_barren),
	KUNIT_CASE(cohort_vnode_test_trickle),
	KUNIT_CASE(cohort_vnode_test_goes_bad),
	KUNIT_CASE(cohort_vnode_test_preferred_many),
	KUNIT_CASE(cohort_vnode_test_sent),
	KUNIT_CASE(cohort_vnode_test_strays),
	KUNIT_CASE(cohort_vnode_test_named),
	KUNIT_CASE(cohort_vnode_test_exec),
	KUNIT_CASE(cohort_vnode_test_collapse),
	KUNIT_CASE(cohort_vnode_test_last_memory),
	KUNIT_CASE(cohort_vnode_test_foreign),
	KUNIT_CASE(cohort_vnode_test_default_moves),
	{}
};

static struct kunit_suite cohort_vnode_test_suite = {
	.name = "cohort_vnode",
	.test_cases = cohort_vnode_test_cases,
};
kunit_test_suite(cohort_vnode_test_suite);
