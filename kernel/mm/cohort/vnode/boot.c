// SPDX-License-Identifier: GPL-2.0
/*
 * Virtual memory nodes at boot: from the layout on the command line to nodes and their CPUs.
 *
 * The three parts of the paper: memory blocks to nodes
 * (cohort_vnode_setup_memblock()), the nodes themselves
 * (cohort_vnode_generate() in host/numa_emulation.h) and their CPU masks
 * (cohort_vnode_set_cpumask()).
 */
#define pr_fmt(fmt) "cohort: " fmt

#include <linux/acpi.h>
#include <linux/cpuhotplug.h>
#include <linux/init.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/of.h>
#include <linux/sched/numa_balancing.h>
#include <linux/topology.h>

#include "../cohort.h"
#include "vnode.h"

#define VNODE_SPANS	256	/* pieces of memory between holes at boot */
#define VNODE_TEXT	256	/* a layout on the command line */

DEFINE_STATIC_KEY_FALSE(cohort_vnode_key);

static char layout_text[VNODE_TEXT] __ro_after_init;

static bool layout_given __initdata;
static char default_name[COHORT_VNODE_NAME] __initdata;
static struct cohort_layout layout __initdata;
static u64 bound[COHORT_VNODE_MAX + 1] __initdata;
static int next_nid __initdata;
static int nid_of[COHORT_VNODE_MAX][MAX_NUMNODES] __initdata;
static nodemask_t has_memory __initdata;	/* the others have addresses alone: no node */

static int __init cohort_vnode_setup(char *text)
{
	layout_given = true;
	strscpy(layout_text, text ?: "", sizeof(layout_text));
	return 0;
}
early_param("cohort.vnode", cohort_vnode_setup);

static int __init cohort_vnode_default_setup(char *text)
{
	if (!text || strscpy(default_name, text, sizeof(default_name)) <= 0)
		strscpy(default_name, "?", sizeof(default_name));
	return 0;
}
early_param("cohort.vnode_default", cohort_vnode_default_setup);

/**
 * cohort_vnode_layout() - the layout in force, as it was given
 */
const char *cohort_vnode_layout(void)
{
	return layout_text;
}

#ifdef CONFIG_ACPI
static unsigned int acpi_cpus __initdata;

static int __init cohort_vnode_count_cpu(union acpi_subtable_headers *header,
					 const unsigned long end)
{
	u32 flags;

	if (header->common.type == ACPI_MADT_TYPE_LOCAL_APIC)
		flags = ((struct acpi_madt_local_apic *)header)->lapic_flags;
	else if (header->common.type == ACPI_MADT_TYPE_LOCAL_X2APIC)
		flags = ((struct acpi_madt_local_x2apic *)header)->lapic_flags;
	else
		flags = ((struct acpi_madt_generic_interrupt *)header)->flags;
	acpi_cpus += flags & ACPI_MADT_ENABLED;
	return 0;
}

static unsigned int __init cohort_vnode_count_acpi_cpus(void)
{
	acpi_cpus = 0;
	if (acpi_disabled)
		return 0;
	acpi_table_parse_madt(ACPI_MADT_TYPE_LOCAL_APIC, cohort_vnode_count_cpu, 0);
	acpi_table_parse_madt(ACPI_MADT_TYPE_LOCAL_X2APIC, cohort_vnode_count_cpu, 0);
	acpi_table_parse_madt(ACPI_MADT_TYPE_GENERIC_INTERRUPT, cohort_vnode_count_cpu, 0);
	return acpi_cpus;
}
#else
static unsigned int __init cohort_vnode_count_acpi_cpus(void)
{
	return 0;
}
#endif

/* CPUs of the machine; the map of possible ones is made later.  0: unknown. */
static unsigned int __init cohort_vnode_count_cpus(void)
{
	unsigned int nr = cohort_vnode_count_acpi_cpus();
	struct device_node *dn;

	if (!nr)
		for_each_of_cpu_node(dn)
			nr++;
	return min(nr, nr_cpu_ids);
}

static unsigned int __init cohort_vnode_find_spans(struct cohort_span *span, unsigned int max)
{
	unsigned long start, end;
	unsigned int nr = 0;
	int i;

	for_each_mem_pfn_range(i, MAX_NUMNODES, &start, &end, NULL) {
		if (nr && span[nr - 1].end == PFN_PHYS(start)) {
			span[nr - 1].end = PFN_PHYS(end);
			continue;
		}
		if (nr == max)
			return 0;
		span[nr].start = PFN_PHYS(start);
		span[nr++].end = PFN_PHYS(end);
	}
	return nr;
}

/* Neither a buddy nor a pageblock nor, where it would matter, a section. */
static u64 __init cohort_vnode_align(void)
{
	unsigned long pages = max(MAX_ORDER_NR_PAGES, pageblock_nr_pages);

#ifdef NODE_NOT_IN_PAGE_FLAGS
	pages = max(pages, PAGES_PER_SECTION);
#endif
	return PFN_PHYS(pages);
}

static const char *__init cohort_vnode_setup_memblock(void)
{
	static struct cohort_span span[VNODE_SPANS] __initdata;
	unsigned int nr = cohort_vnode_find_spans(span, VNODE_SPANS);
	unsigned int cpus = cohort_vnode_count_cpus();
	const char *why;

	if (!nr)
		return "memory is in too many pieces";
	why = cohort_layout_parse(layout_text, &layout);
	if (why)
		return why;
	if (cpus && cpus < layout.nr)
		return "more nodes than CPUs";
	if (default_name[0] &&
	    cohort_layout_find(&layout, default_name, strlen(default_name)) < 0)
		return "cohort.vnode_default names none of the nodes";
	return cohort_layout_split(&layout, span, nr, cohort_vnode_align(), bound);
}

/**
 * __cohort_vnode_wanted() - is there a layout that fits this machine?
 *
 * First part of the scheme, memory blocks to nodes: reads the layout and lays
 * it over the memory.  A bad one is told once, and the machine boots as if it
 * were not there.
 */
bool __init __cohort_vnode_wanted(void)
{
	const char *why;

	if (!layout_given)
		return false;
	why = cohort_vnode_setup_memblock();
	if (why) {
		pr_err("cohort.vnode=%s: %s; booting without virtual nodes\n",
		       layout_text, why);
		layout_given = false;
		return false;
	}
	memset(nid_of, -1, sizeof(nid_of));
	nodes_clear(has_memory);
	next_nid = 0;
	return true;
}

/**
 * cohort_vnode_nid() - the emulated node of some memory
 * @start: first byte
 * @phys_nid: its physical node
 * @end: one past the last byte; lowered to where the virtual node ends
 *
 * Return: the node, or -ENOSPC if there are too many.
 */
int __init cohort_vnode_nid(u64 start, int phys_nid, u64 *end)
{
	unsigned int i = cohort_layout_piece(bound, layout.nr, start, end);

	if (nid_of[i][phys_nid] < 0) {
		if (next_nid == MAX_NUMNODES)
			return -ENOSPC;
		nid_of[i][phys_nid] = next_nid++;
	}
	if (memblock_overlaps_region(&memblock.memory, start, *end - start))
		node_set(nid_of[i][phys_nid], has_memory);
	return nid_of[i][phys_nid];
}

/**
 * cohort_vnode_commit() - the emulated nodes are the machine's nodes now
 */
void __init cohort_vnode_commit(void)
{
	const char *name = default_name;
	unsigned int i;
	int phys;

	for (i = 0; i < layout.nr; i++) {
		struct cohort_vnode *vn = &cohort_vnodes[i];
		const struct cohort_share *share = &layout.share[i];

		strscpy(vn->name, share->name);
		nodes_clear(vn->nodes);
		for (phys = 0; phys < MAX_NUMNODES; phys++)
			if (nid_of[i][phys] >= 0 && node_isset(nid_of[i][phys], has_memory))
				node_set(nid_of[i][phys], vn->nodes);
		vn->nid = first_node(vn->nodes);
		if (!default_name[0] && !share->bytes && !share->percent)
			name = share->name;
	}
	cohort_vnode_begin(layout.nr, name);
}

/*
 * Third part of the scheme: which CPUs are near a virtual node.  Emulated
 * nodes share the CPUs of their physical node, so this is what hotplug left.
 */
static int cohort_vnode_set_cpumask(unsigned int cpu)
{
	unsigned int i;
	int nid;

	for (i = 0; i < cohort_nr_vnodes; i++) {
		struct cohort_vnode *vn = &cohort_vnodes[i];
		bool near = false;

		for_each_node_mask(nid, vn->nodes)
			near |= cpumask_test_cpu(cpu, cpumask_of_node(nid));
		cpumask_assign_cpu(cpu, &vn->cpus, near && cpu_online(cpu));
	}
	return 0;
}

static int cohort_vnode_clear_cpumask(unsigned int cpu)
{
	unsigned int i;

	for (i = 0; i < cohort_nr_vnodes; i++)
		cpumask_clear_cpu(cpu, &cohort_vnodes[i].cpus);
	return 0;
}

/*
 * Every CPU is as near to one virtual node as to the next, so there is nothing to
 * balance: pages would be unmapped, and copied within their role, for no gain.  The
 * kernel switches that on by itself for any machine with several nodes.
 */
static void __init cohort_vnode_stop_balancing(void)
{
	if (!IS_ENABLED(CONFIG_NUMA_BALANCING))
		return;
	set_numabalancing_state(false);
	pr_info("vnode: NUMA balancing is off\n");
}

/* A role whose processes could have no page tables: all its memory is for what can be moved. */
static const struct cohort_vnode *__init cohort_vnode_movable(void)
{
	unsigned int i;

	for (i = 0; i < cohort_nr_vnodes; i++)
		if (!nodes_intersects(cohort_vnodes[i].nodes, node_states[N_NORMAL_MEMORY]))
			return &cohort_vnodes[i];
	return NULL;
}

static int __init cohort_vnode_init(void)
{
	const struct cohort_vnode *movable = cohort_vnode_movable();
	int err;

	if (movable) {
		pr_err("cohort.vnode=%s: all memory of %s is movable; booting without virtual nodes\n",
		       layout_text, movable->name);
		cohort_nr_vnodes = 0;
		return 0;
	}
	if (layout_given && !cohort_nr_vnodes)
		pr_err("cohort.vnode=%s: %s; booting without virtual nodes\n", layout_text,
		       "the machine's own nodes could not be split");
	if (!cohort_nr_vnodes)
		return 0;
	err = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "mm/cohort:vnode",
				cohort_vnode_set_cpumask, cohort_vnode_clear_cpumask);
	if (err < 0)
		return err;
	cohort_vnode_count_victims();
	cohort_vnode_watch_memory();
	static_branch_enable(&cohort_vnode_key);
	cohort_vnode_stop_balancing();
	pr_info("vnode: %s, default %s\n", layout_text, cohort_vnode_default()->name);
	return 0;
}
subsys_initcall(cohort_vnode_init);
