/* SPDX-License-Identifier: GPL-2.0 */
/*
 * /proc/PID/vnode, the role of a process.  Included once, inside
 * fs/proc/base.c, because it needs that directory's get_proc_task().
 */
#ifdef CONFIG_COHORT_VNODE

#include "../vnode/vnode.h"

/* A line of /proc/PID/vnode with its NUL. */
#define COHORT_VNODE_LINE	24

static ssize_t cohort_proc_vnode_read(struct file *file, char __user *buf,
				      size_t count, loff_t *ppos)
{
	struct task_struct *task = get_proc_task(file_inode(file));
	char name[COHORT_VNODE_LINE];
	size_t len;

	if (!task)
		return -ESRCH;
	len = scnprintf(name, sizeof(name), "%s\n", cohort_vnode_name(task));
	put_task_struct(task);
	return simple_read_from_buffer(buf, count, ppos, name, len);
}

static ssize_t cohort_proc_vnode_write(struct file *file, const char __user *buf,
				       size_t count, loff_t *ppos)
{
	char name[COHORT_VNODE_LINE];
	struct task_struct *task;
	int err;

	if (*ppos || !count || count >= sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, buf, count))
		return -EFAULT;
	name[count] = '\0';
	task = get_proc_task(file_inode(file));
	if (!task)
		return -ESRCH;
	/* The opener, too: the file could be the standard error of a setuid program. */
	err = cohort_vnode_move(task, name, capable(CAP_SYS_RESOURCE) &&
				file_ns_capable(file, &init_user_ns, CAP_SYS_RESOURCE));
	put_task_struct(task);
	return err ?: count;
}

static const struct file_operations proc_vnode_operations = {
	.read = cohort_proc_vnode_read,
	.write = cohort_proc_vnode_write,
	.llseek = generic_file_llseek,
};

#endif /* CONFIG_COHORT_VNODE */
