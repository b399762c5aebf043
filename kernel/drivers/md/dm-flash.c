// SPDX-License-Identifier: GPL-2.0
/*
 * flash: device mapper target with the latency of phone storage.
 *
 * A memory-backed disk answers at once; real flash does not, and reclaim is
 * judged by what it costs to read a page again.  One queue: a request waits
 * for the one before it, then takes a fixed latency plus its size over the
 * bandwidth.  Time is the guest's, so under QEMU's -icount it is virtual and
 * repeats exactly.
 *
 * Table line: <start> <length> flash <device> <read us> <write us> <MB/s>
 */
#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/device-mapper.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/ktime.h>
#include <linux/workqueue.h>

#define DM_MSG_PREFIX "flash"

/**
 * struct flash - one target
 * @dev: the disk below
 * @read_ns: fixed latency of a read
 * @write_ns: fixed latency of a write
 * @ns_per_sector: reciprocal of the bandwidth
 * @lock: protects @waiting and @busy_until
 * @waiting: requests in the order they will finish
 * @busy_until: when the last of them finishes
 * @timer: fires when the first of them is due
 * @work: passes due requests on, where it may sleep
 * @wq: queue for @work; storage must make progress under memory pressure
 */
struct flash {
	struct dm_dev *dev;
	u64 read_ns;
	u64 write_ns;
	u64 ns_per_sector;
	spinlock_t lock;
	struct bio_list waiting;
	ktime_t busy_until;
	struct hrtimer timer;
	struct work_struct work;
	struct workqueue_struct *wq;
};

/* In the bio: when it is due. */
struct flash_bio {
	ktime_t due;
};

static ktime_t flash_due(struct bio *bio)
{
	struct flash_bio *fb = dm_per_bio_data(bio, sizeof(*fb));

	return fb->due;
}

static enum hrtimer_restart flash_timer(struct hrtimer *timer)
{
	struct flash *flash = container_of(timer, struct flash, timer);

	queue_work(flash->wq, &flash->work);
	return HRTIMER_NORESTART;
}

static void flash_work(struct work_struct *work)
{
	struct flash *flash = container_of(work, struct flash, work);
	struct bio *bio;

	for (;;) {
		spin_lock_irq(&flash->lock);
		bio = bio_list_peek(&flash->waiting);
		if (bio && ktime_after(flash_due(bio), ktime_get())) {
			hrtimer_start(&flash->timer, flash_due(bio),
				      HRTIMER_MODE_ABS);
			bio = NULL;
		}
		if (bio)
			bio_list_pop(&flash->waiting);
		spin_unlock_irq(&flash->lock);
		if (!bio)
			return;
		dm_submit_bio_remap(bio, NULL);
	}
}

static int flash_map(struct dm_target *ti, struct bio *bio)
{
	struct flash *flash = ti->private;
	struct flash_bio *fb = dm_per_bio_data(bio, sizeof(*fb));
	u64 cost = bio_data_dir(bio) == READ ? flash->read_ns : flash->write_ns;
	bool first;

	bio_set_dev(bio, flash->dev->bdev);
	bio->bi_iter.bi_sector = dm_target_offset(ti, bio->bi_iter.bi_sector);
	cost += bio_sectors(bio) * flash->ns_per_sector;

	spin_lock_irq(&flash->lock);
	first = bio_list_empty(&flash->waiting);
	flash->busy_until = ktime_add_ns(max(ktime_get(), flash->busy_until), cost);
	fb->due = flash->busy_until;
	bio_list_add(&flash->waiting, bio);
	if (first)
		hrtimer_start(&flash->timer, fb->due, HRTIMER_MODE_ABS);
	spin_unlock_irq(&flash->lock);
	return DM_MAPIO_SUBMITTED;
}

static int flash_parse(struct dm_target *ti, struct flash *flash, char **argv)
{
	unsigned int read_us, write_us, mbps;

	if (kstrtouint(argv[1], 10, &read_us) || kstrtouint(argv[2], 10, &write_us) ||
	    kstrtouint(argv[3], 10, &mbps) || !mbps) {
		ti->error = "expected: device, read us, write us, MB/s";
		return -EINVAL;
	}
	flash->read_ns = (u64)read_us * NSEC_PER_USEC;
	flash->write_ns = (u64)write_us * NSEC_PER_USEC;
	flash->ns_per_sector = div_u64(SECTOR_SIZE * 1000ULL, mbps);
	return 0;
}

static int flash_ctr(struct dm_target *ti, unsigned int argc, char **argv)
{
	struct flash *flash;
	int err;

	if (argc != 4) {
		ti->error = "expected: device, read us, write us, MB/s";
		return -EINVAL;
	}
	flash = kzalloc(sizeof(*flash), GFP_KERNEL);
	if (!flash)
		return -ENOMEM;
	spin_lock_init(&flash->lock);
	bio_list_init(&flash->waiting);
	hrtimer_init(&flash->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	flash->timer.function = flash_timer;
	INIT_WORK(&flash->work, flash_work);
	err = flash_parse(ti, flash, argv);
	if (err)
		goto out_free;
	err = -ENOMEM;
	flash->wq = alloc_workqueue("flash", WQ_MEM_RECLAIM | WQ_HIGHPRI, 1);
	if (!flash->wq)
		goto out_free;
	err = dm_get_device(ti, argv[0], dm_table_get_mode(ti->table), &flash->dev);
	if (err) {
		ti->error = "no such device";
		goto out_destroy_wq;
	}
	ti->num_flush_bios = 1;
	ti->num_discard_bios = 1;
	ti->per_io_data_size = sizeof(struct flash_bio);
	ti->accounts_remapped_io = true;
	ti->private = flash;
	return 0;

out_destroy_wq:
	destroy_workqueue(flash->wq);
out_free:
	kfree(flash);
	return err;
}

static void flash_dtr(struct dm_target *ti)
{
	struct flash *flash = ti->private;

	hrtimer_cancel(&flash->timer);
	destroy_workqueue(flash->wq);
	dm_put_device(ti, flash->dev);
	kfree(flash);
}

static int flash_iterate_devices(struct dm_target *ti,
				 iterate_devices_callout_fn fn, void *data)
{
	struct flash *flash = ti->private;

	return fn(ti, flash->dev, 0, ti->len, data);
}

static struct target_type flash_target = {
	.name = "flash",
	.version = { 1, 0, 0 },
	.features = DM_TARGET_PASSES_INTEGRITY,
	.module = THIS_MODULE,
	.ctr = flash_ctr,
	.dtr = flash_dtr,
	.map = flash_map,
	.iterate_devices = flash_iterate_devices,
};

static int __init flash_init(void)
{
	return dm_register_target(&flash_target);
}
device_initcall(flash_init);
