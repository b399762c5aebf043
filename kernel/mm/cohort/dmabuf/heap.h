/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Contiguous frames, and dma-bufs made of them: what the heaps share.
 */
#ifndef _MM_COHORT_HEAP_H
#define _MM_COHORT_HEAP_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>

struct cohort_payer;
struct dma_buf;
struct dma_heap;
struct obj_cgroup;

/**
 * struct cohort_buffer - a dma-buf of ours
 * @len: bytes
 * @table: its pieces
 * @release: gives the pieces back; the table is still there
 * @payer: the user that it counts for
 * @objcg: the memory cgroup that it is charged to, or NULL
 * @charged: bytes
 * @lock: protects the rest
 * @users: attachments
 * @nr_vmaps: users of @vaddr
 * @vaddr: where the kernel sees it
 */
struct cohort_buffer {
	unsigned long len;
	struct sg_table table;
	void (*release)(struct cohort_buffer *buffer);
	struct cohort_payer *payer;
	struct obj_cgroup *objcg;
	unsigned long charged;
	struct mutex lock;
	struct list_head users;
	unsigned int nr_vmaps;
	void *vaddr;
};

/* heap.c */
struct cohort_buffer *cohort_heap_buffer(unsigned long len, bool one_piece,
					 void (*release)(struct cohort_buffer *buffer));
void cohort_heap_discard(struct cohort_buffer *buffer);
struct dma_buf *cohort_heap_export(struct dma_heap *heap, struct cohort_buffer *buffer,
				   u32 fd_flags);
struct dma_buf *cohort_heap_one_piece(struct dma_heap *heap, struct cohort_buffer *buffer,
				      struct page *page, u32 fd_flags);

/* quota.c */
int cohort_quota_take(struct cohort_buffer *buffer);
void cohort_quota_return(struct cohort_buffer *buffer);

#endif /* _MM_COHORT_HEAP_H */
