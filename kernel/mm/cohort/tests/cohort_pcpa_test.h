/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The common part of the suites of the page-cache-preferred area: a small one on the
 * machine's own memory, with a file's pages in it.
 */
#ifndef _MM_COHORT_TESTS_COHORT_PCPA_TEST_H
#define _MM_COHORT_TESTS_COHORT_PCPA_TEST_H

#include "../pcpa/pcpa.h"
#include "cohort_test.h"

#define AREA_PAGES	(4 * pageblock_nr_pages)
#define BLOCK_BYTES	((u64)pageblock_nr_pages << PAGE_SHIFT)

/* A client's turn that outlasts what a busy host does to the case that looks at it. */
#define LONG_TURN_MS	2000

/* A file with nothing but a page cache. */
struct cohort_pcpa_test_cache {
	struct file *file;
	struct inode *inode;
	unsigned long nr;
};

/* With what CPUs have at hand. */
struct cohort_pcpa_sizes cohort_pcpa_test_look(void);

/* An area; waiting is for the end of a client's turn: the timer is not what is tested. */
int cohort_pcpa_test_begin(struct kunit *test);
void cohort_pcpa_test_wait(void);
void cohort_pcpa_test_end(struct kunit *test);

/* What a request finds in the area that has nothing else, with more ALLOC_* if it is the last. */
struct page *cohort_pcpa_test_last_look(gfp_t gfp, unsigned int order, unsigned int alloc_flags);

/* A file without storage, and a reference to one of its pages. */
void cohort_pcpa_test_cache_begin(struct kunit *test, struct cohort_pcpa_test_cache *cache);
void cohort_pcpa_test_cache_end(struct cohort_pcpa_test_cache *cache);
struct folio *cohort_pcpa_test_cache_get(struct kunit *test, struct cohort_pcpa_test_cache *cache,
					 unsigned long i);

/* An area full of page cache. */
void cohort_pcpa_test_full_begin(struct kunit *test, struct cohort_pcpa_test_cache *cache);
void cohort_pcpa_test_full_end(struct kunit *test, struct cohort_pcpa_test_cache *cache);

#endif /* _MM_COHORT_TESTS_COHORT_PCPA_TEST_H */
