/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The common part of the suites of Cohort: a domain of the case's own on the machine's
 * page allocator, with the region scheme on, and everything freed afterwards.
 */
#ifndef _MM_COHORT_TESTS_COHORT_TEST_H
#define _MM_COHORT_TESTS_COHORT_TEST_H

#include <kunit/test.h>

#include "../../internal.h"
#include "../cohort.h"
#include "../region/region.h"

#define COHORT_TEST_PAGES	(4 * COHORT_BLOCK_PAGES)

/**
 * struct cohort_test - a case's memory, in kunit->priv
 * @dom: a process domain without a process
 * @page: pages taken, NULL where freed again
 * @nr: entries of @page in use
 */
struct cohort_test {
	struct cohort_domain *dom;
	struct page *page[COHORT_TEST_PAGES];
	unsigned int nr;
};

int cohort_test_suite_init(struct kunit_suite *suite);
void cohort_test_suite_exit(struct kunit_suite *suite);
int cohort_test_init(struct kunit *test);
void cohort_test_exit(struct kunit *test);

/*
 * A case that is over has a process that still frees its memory: until that is
 * done it comes into what the next case counts.
 */
int cohort_test_wait(struct kunit *test);

/*
 * Pages of the case's domain; number @first is the first one taken.  Afterwards no
 * page of it is at hand, so that the counts of the domain are exact.
 */
unsigned int cohort_test_take(struct kunit *test, unsigned int nr);
void cohort_test_free(struct kunit *test, unsigned int first, unsigned int nr);
void cohort_test_free_shuffled(struct kunit *test);

/* The same, and what is freed stays at hand. */
void cohort_test_drop(struct kunit *test, unsigned int first, unsigned int nr);

struct cohort_block *cohort_test_block(struct page *page);
struct cohort_domain *cohort_test_owner(struct page *page);
struct cohort_room *cohort_test_room(struct kunit *test);

/* Order of the free piece that has this page, or -1. */
int cohort_test_buddy_order(struct page *page);

/* A request as the page allocator prepares it, and what it breaches. */
void cohort_test_context(struct alloc_context *ac, gfp_t gfp);
struct page *cohort_test_breach(gfp_t gfp, unsigned int order);

/* The same, as before a process is killed for the request. */
struct page *cohort_test_breach_last(gfp_t gfp, unsigned int order);

/* All zones are far below their marks, or have no boost. */
void cohort_test_boost(bool on);

/* A page is there, and is given back. */
void cohort_test_gets(struct kunit *test, struct page *page, unsigned int order);

/* Pages of any order that are given back together, each by @give; and all that breaches bring. */
void cohort_test_keep(struct list_head *pages, struct page *page, unsigned int order);
void cohort_test_release(struct list_head *pages, void (*give)(struct page *, unsigned int));
void cohort_test_breach_all(struct list_head *pages, gfp_t gfp, unsigned int order);

/* Pages of an owner that are at hand, on all CPUs. */
unsigned int cohort_test_at_hand(unsigned int id);

/* Free pages that have an owner, as the domains count them; and as a zone does. */
unsigned long cohort_test_domains(void);
void cohort_test_recount(struct kunit *test, struct zone *zone, unsigned long isolated);

/* Pages that are isolated from the LRU lists of all nodes. */
long cohort_test_isolated(void);

/* Anonymous memory of an address space of the case's own. */
unsigned long cohort_test_map(struct kunit *test, unsigned int pages);
void cohort_test_touch(struct kunit *test, unsigned long addr, unsigned int pages);
void cohort_test_verify(struct kunit *test, unsigned long addr, unsigned int pages);
void cohort_test_grow_up(struct kunit *test);
struct page *cohort_test_page_at(struct kunit *test, unsigned long addr);
struct cohort_domain *cohort_test_domain_at(struct kunit *test, unsigned long addr);
void cohort_test_set_adj(int oom_score_adj);
struct address_space *cohort_test_mapping(struct kunit *test);

#endif /* _MM_COHORT_TESTS_COHORT_TEST_H */
