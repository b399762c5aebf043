/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BASE_KERNEL_H
#define BASE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUPS "/sys/fs/cgroup"

/* Cohort's files for the administrator. */
#define SCHEMES "/sys/kernel/mm/cohort/"
#define PCPA SCHEMES "pcpa/"
#define ENTITLED "/proc/self/cohort_entitled"
#define VNODES SCHEMES "vnode/"

/* oom_score_adj as Android's ProcessList.java writes it */
#define ADJ_NATIVE (-1000)
#define ADJ_FOREGROUND 0
#define ADJ_HOME 600
#define ADJ_PREVIOUS 700
#define ADJ_CACHED 900
#define ADJ_CACHED_MAX 999

void meminfo_read(char *text, size_t size);
long long meminfo_kb(const char *text, const char *name);
void set_knob(const char *path, const char *value);
bool storage_appears(const char *dev);
int cgroup_make(const char *name, const char *controller);
void set_adj(int pid, int adj);
uint64_t vmstat_value(const char *text, const char *name);

/* Page cache, in pages: in nr_file_pages are shared memory and the swap cache, too. */
uint64_t vmstat_cache(const char *text);
uint64_t read_vmstat(const char *name);

#endif
