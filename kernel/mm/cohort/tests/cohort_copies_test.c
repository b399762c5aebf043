// SPDX-License-Identifier: GPL-2.0
/*
 * Frames kept for contiguous pieces: sizes, pieces, and what comes back late or poisoned.
 * That copies are those of what a file has is tested by a guest with a file system.
 */
#include <linux/highmem.h>
#include <linux/mm.h>

#include "cohort_pcpa_test.h"

static struct cohort_copies_stat cohort_copies_test_look(void)
{
	struct cohort_copies_stat stat;

	cohort_copies_stats(&stat);
	return stat;
}

static int cohort_copies_test_end(void)
{
	return cohort_copies_resize(0, COHORT_ANY_BASE);
}

static void cohort_copies_test_sizes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(BLOCK_BYTES / 2, COHORT_ANY_BASE), -EINVAL);
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(PFN_PHYS((u64)totalram_pages()) * 2,
						   COHORT_ANY_BASE), -EINVAL);
	KUNIT_EXPECT_FALSE(test, cohort_copies());
	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_TRUE(test, cohort_copies());
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().size, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_copies_resize(2 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().size, AREA_PAGES / 2);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	KUNIT_EXPECT_FALSE(test, cohort_copies());
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(1, GFP_KERNEL));
}

static void cohort_copies_test_pieces(struct kunit *test)
{
	struct page *page, *half;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(AREA_PAGES + 1, GFP_KERNEL));
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_EQ(test, page_count(page + AREA_PAGES - 1), 1);
	KUNIT_EXPECT_NULL(test, memchr_inv(page_address(page + 7), 0, PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(1, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), -EBUSY);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().client, AREA_PAGES);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES));
	half = cohort_copies_piece(AREA_PAGES / 2, GFP_KERNEL);
	page = cohort_copies_piece(AREA_PAGES / 2, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, half);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(half, AREA_PAGES / 2));
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES / 2));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
}

/* A driver still has a page that its client has given back. */
static void cohort_copies_test_late(struct kunit *test)
{
	struct page *page;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	get_page(page + 5);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().client, 1UL);
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(AREA_PAGES, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), -EBUSY);
	put_page(page + 5);
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL);
	KUNIT_EXPECT_NOT_NULL(test, page);
	if (page)
		cohort_copies_free(page, AREA_PAGES);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
}

static void cohort_copies_test_poisoned(struct kunit *test)
{
	struct page *page, *bad;

	KUNIT_ASSERT_EQ(test, cohort_copies_resize(4 * BLOCK_BYTES, COHORT_ANY_BASE), 0);
	page = cohort_copies_piece(AREA_PAGES, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	bad = page + 3;
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES));
	SetPageHWPoison(bad);
	KUNIT_EXPECT_NULL(test, cohort_copies_piece(AREA_PAGES, GFP_KERNEL));
	page = cohort_copies_piece(AREA_PAGES / 2, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_TRUE(test, bad < page || bad >= page + AREA_PAGES / 2);
	KUNIT_EXPECT_TRUE(test, cohort_copies_free(page, AREA_PAGES / 2));
	KUNIT_EXPECT_EQ(test, cohort_copies_test_look().client, 0UL);
	KUNIT_EXPECT_EQ(test, cohort_copies_test_end(), 0);
	/* It has not been freed. */
	ClearPageHWPoison(bad);
	init_page_count(bad);
	__free_page(bad);
}

static struct kunit_case cohort_copies_test_cases[] = {
	KUNIT_CASE(cohort_copies_test_sizes),
	KUNIT_CASE(cohort_copies_test_pieces),
	KUNIT_CASE(cohort_copies_test_late),
	KUNIT_CASE(cohort_copies_test_poisoned),
	{}
};

static struct kunit_suite cohort_copies_test_suite = {
	.name = "cohort_copies",
	.test_cases = cohort_copies_test_cases,
};
kunit_test_suite(cohort_copies_test_suite);
