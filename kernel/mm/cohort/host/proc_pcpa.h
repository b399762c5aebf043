/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /proc/PID/cohort_entitled: is the process a client of the page-cache-preferred
 * area?  Included once, inside fs/proc/base.c, because it needs that
 * directory's get_proc_task().
 */
#ifdef CONFIG_COHORT_PCPA

#include "../pcpa/pcpa.h"

static ssize_t cohort_proc_entitled_read(struct file *file, char __user *buf,
					 size_t count, loff_t *ppos)
{
	struct task_struct *task = get_proc_task(file_inode(file));
	char text[4];
	int yes;

	if (!task)
		return -ESRCH;
	yes = cohort_pcpa_is_entitled(task);
	put_task_struct(task);
	if (yes < 0)
		return yes;
	return simple_read_from_buffer(buf, count, ppos, text,
				       scnprintf(text, sizeof(text), "%d\n", yes));
}

/*
 * An entitled process takes memory from others: CAP_SYS_RESOURCE decides, of the opener, too, or
 * the file could be the standard error of a setuid program.
 */
static ssize_t cohort_proc_entitled_write(struct file *file, const char __user *buf,
					  size_t count, loff_t *ppos)
{
	struct task_struct *task;
	bool on;
	int err;

	if (!capable(CAP_SYS_RESOURCE) || !file_ns_capable(file, &init_user_ns, CAP_SYS_RESOURCE))
		return -EPERM;
	err = kstrtobool_from_user(buf, count, &on);
	if (err)
		return err;
	task = get_proc_task(file_inode(file));
	if (!task)
		return -ESRCH;
	err = cohort_pcpa_entitle(task, on);
	put_task_struct(task);
	return err ?: count;
}

static const struct file_operations proc_entitled_operations = {
	.read = cohort_proc_entitled_read,
	.write = cohort_proc_entitled_write,
	.llseek = generic_file_llseek,
};

#endif /* CONFIG_COHORT_PCPA */
