// SPDX-License-Identifier: GPL-2.0
/*
 * dma-bufs made of pages that a heap of Cohort found.
 */
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/iosys-map.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "heap.h"

/**
 * struct heap_user - a device that uses the buffer
 * @dev: the device
 * @table: a copy of the buffer's table with the device's addresses
 * @mapped: those are valid
 * @node: on the buffer's list
 */
struct heap_user {
	struct device *dev;
	struct sg_table table;
	bool mapped;
	struct list_head node;
};

static int cohort_heap_copy_table(struct sg_table *to, struct sg_table *from)
{
	struct scatterlist *src, *dst;
	unsigned int i;
	int err;

	err = sg_alloc_table(to, from->orig_nents, GFP_KERNEL);
	if (err)
		return err;
	dst = to->sgl;
	for_each_sgtable_sg(from, src, i) {
		sg_set_page(dst, sg_page(src), src->length, src->offset);
		dst = sg_next(dst);
	}
	return 0;
}

static int cohort_heap_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment)
{
	struct cohort_buffer *buffer = dmabuf->priv;
	struct heap_user *user = kzalloc(sizeof(*user), GFP_KERNEL);
	int err;

	if (!user)
		return -ENOMEM;
	err = cohort_heap_copy_table(&user->table, &buffer->table);
	if (err) {
		kfree(user);
		return err;
	}
	user->dev = attachment->dev;
	attachment->priv = user;
	mutex_lock(&buffer->lock);
	list_add(&user->node, &buffer->users);
	mutex_unlock(&buffer->lock);
	return 0;
}

static void cohort_heap_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment)
{
	struct cohort_buffer *buffer = dmabuf->priv;
	struct heap_user *user = attachment->priv;

	mutex_lock(&buffer->lock);
	list_del(&user->node);
	mutex_unlock(&buffer->lock);
	sg_free_table(&user->table);
	kfree(user);
}

static struct sg_table *cohort_heap_map(struct dma_buf_attachment *attachment,
					enum dma_data_direction direction)
{
	struct heap_user *user = attachment->priv;
	int err = dma_map_sgtable(user->dev, &user->table, direction, 0);

	if (err)
		return ERR_PTR(err);
	user->mapped = true;
	return &user->table;
}

static void cohort_heap_unmap(struct dma_buf_attachment *attachment, struct sg_table *table,
			      enum dma_data_direction direction)
{
	struct heap_user *user = attachment->priv;

	user->mapped = false;
	dma_unmap_sgtable(user->dev, table, direction, 0);
}

static int cohort_heap_begin_cpu(struct dma_buf *dmabuf, enum dma_data_direction direction)
{
	struct cohort_buffer *buffer = dmabuf->priv;
	struct heap_user *user;

	mutex_lock(&buffer->lock);
	if (buffer->nr_vmaps)
		invalidate_kernel_vmap_range(buffer->vaddr, buffer->len);
	list_for_each_entry(user, &buffer->users, node)
		if (user->mapped)
			dma_sync_sgtable_for_cpu(user->dev, &user->table, direction);
	mutex_unlock(&buffer->lock);
	return 0;
}

static int cohort_heap_end_cpu(struct dma_buf *dmabuf, enum dma_data_direction direction)
{
	struct cohort_buffer *buffer = dmabuf->priv;
	struct heap_user *user;

	mutex_lock(&buffer->lock);
	if (buffer->nr_vmaps)
		flush_kernel_vmap_range(buffer->vaddr, buffer->len);
	list_for_each_entry(user, &buffer->users, node)
		if (user->mapped)
			dma_sync_sgtable_for_device(user->dev, &user->table, direction);
	mutex_unlock(&buffer->lock);
	return 0;
}

static int cohort_heap_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct cohort_buffer *buffer = dmabuf->priv;
	unsigned long addr = vma->vm_start, skip = vma->vm_pgoff << PAGE_SHIFT;
	struct scatterlist *sg;
	unsigned int i;

	/* The maps of a process would tell where memory of a private one lies. */
	if (!(vma->vm_flags & (VM_SHARED | VM_MAYSHARE)))
		return -EINVAL;
	for_each_sgtable_sg(&buffer->table, sg, i) {
		unsigned long len = sg->length, pfn = page_to_pfn(sg_page(sg));
		int err;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		pfn += skip >> PAGE_SHIFT;
		len = min(len - skip, vma->vm_end - addr);
		skip = 0;
		err = remap_pfn_range(vma, addr, pfn, len, vma->vm_page_prot);
		if (err)
			return err;
		addr += len;
		if (addr == vma->vm_end)
			break;
	}
	return 0;
}

static void *cohort_heap_vmap_pages(struct cohort_buffer *buffer)
{
	unsigned long i = 0, nr = buffer->len >> PAGE_SHIFT;
	struct page **pages = kvmalloc_array(nr, sizeof(*pages), GFP_KERNEL);
	struct sg_page_iter iter;
	void *vaddr;

	if (!pages)
		return NULL;
	for_each_sgtable_page(&buffer->table, &iter, 0)
		pages[i++] = sg_page_iter_page(&iter);
	vaddr = vmap(pages, nr, VM_MAP, PAGE_KERNEL);
	kvfree(pages);
	return vaddr;
}

static int cohort_heap_vmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct cohort_buffer *buffer = dmabuf->priv;
	int err = 0;

	mutex_lock(&buffer->lock);
	if (!buffer->nr_vmaps)
		buffer->vaddr = cohort_heap_vmap_pages(buffer);
	if (buffer->vaddr) {
		buffer->nr_vmaps++;
		iosys_map_set_vaddr(map, buffer->vaddr);
	} else {
		err = -ENOMEM;
	}
	mutex_unlock(&buffer->lock);
	return err;
}

static void cohort_heap_vunmap(struct dma_buf *dmabuf, struct iosys_map *map)
{
	struct cohort_buffer *buffer = dmabuf->priv;

	mutex_lock(&buffer->lock);
	if (!--buffer->nr_vmaps) {
		vunmap(buffer->vaddr);
		buffer->vaddr = NULL;
	}
	mutex_unlock(&buffer->lock);
	iosys_map_clear(map);
}

/**
 * cohort_heap_buffer() - begin a buffer of the current task
 * @len: bytes, whole pages
 * @one_piece: it is for cohort_heap_one_piece()
 * @release: gives its pieces back
 *
 * Return: the buffer, without pieces yet, or ERR_PTR(): -EDQUOT; -EINVAL for one piece of 4 GiB
 * and more, as an entry of a table has 32 bits; -ENOMEM, also for more than there is memory.  What
 * is so large is neither counted nor charged.
 */
struct cohort_buffer *cohort_heap_buffer(unsigned long len, bool one_piece,
					 void (*release)(struct cohort_buffer *buffer))
{
	struct cohort_buffer *buffer;
	int err;

	if (one_piece && len > UINT_MAX)
		return ERR_PTR(-EINVAL);
	if (len >> PAGE_SHIFT > totalram_pages())
		return ERR_PTR(-ENOMEM);
	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);
	if (!buffer)
		return ERR_PTR(-ENOMEM);
	buffer->len = len;
	buffer->release = release;
	mutex_init(&buffer->lock);
	INIT_LIST_HEAD(&buffer->users);
	err = cohort_quota_take(buffer);
	if (!err)
		return buffer;
	kfree(buffer);
	return ERR_PTR(err);
}

/**
 * cohort_heap_discard() - a buffer has no pieces, or no more
 * @buffer: from cohort_heap_buffer()
 */
void cohort_heap_discard(struct cohort_buffer *buffer)
{
	cohort_quota_return(buffer);
	sg_free_table(&buffer->table);
	kfree(buffer);
}

static void cohort_heap_free(struct cohort_buffer *buffer)
{
	buffer->release(buffer);
	cohort_heap_discard(buffer);
}

static void cohort_heap_release(struct dma_buf *dmabuf)
{
	cohort_heap_free(dmabuf->priv);
}

static const struct dma_buf_ops heap_ops = {
	.attach = cohort_heap_attach,
	.detach = cohort_heap_detach,
	.map_dma_buf = cohort_heap_map,
	.unmap_dma_buf = cohort_heap_unmap,
	.begin_cpu_access = cohort_heap_begin_cpu,
	.end_cpu_access = cohort_heap_end_cpu,
	.mmap = cohort_heap_mmap,
	.vmap = cohort_heap_vmap,
	.vunmap = cohort_heap_vunmap,
	.release = cohort_heap_release,
};

/**
 * cohort_heap_export() - make a dma-buf of pieces
 * @heap: the heap it is of
 * @buffer: from cohort_heap_buffer(), with a table; it and its pieces are the dma-buf's from
 *	now on, and gone after an error
 * @fd_flags: of its descriptor
 */
struct dma_buf *cohort_heap_export(struct dma_heap *heap, struct cohort_buffer *buffer,
				   u32 fd_flags)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct dma_buf *dmabuf;

	info.exp_name = dma_heap_get_name(heap);
	info.ops = &heap_ops;
	info.size = buffer->len;
	info.flags = fd_flags;
	info.priv = buffer;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf))
		cohort_heap_free(buffer);
	return dmabuf;
}

/**
 * cohort_heap_one_piece() - make a dma-buf of contiguous pages
 * @heap: the heap it is of
 * @buffer: from cohort_heap_buffer(), and as for cohort_heap_export()
 * @page: the first of its pages
 * @fd_flags: of its descriptor
 *
 * Return: the dma-buf, or ERR_PTR().
 */
struct dma_buf *cohort_heap_one_piece(struct dma_heap *heap, struct cohort_buffer *buffer,
				      struct page *page, u32 fd_flags)
{
	sg_set_page(buffer->table.sgl, page, buffer->len, 0);
	return cohort_heap_export(heap, buffer, fd_flags);
}
