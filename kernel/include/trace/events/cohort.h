/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM cohort

#if !defined(_TRACE_COHORT_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_COHORT_H

#include <linux/tracepoint.h>

TRACE_EVENT(cohort_block_take,

	TP_PROTO(unsigned long pfn, unsigned int order, int kind),

	TP_ARGS(pfn, order, kind),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned int, order)
		__field(int, kind)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->order = order;
		__entry->kind = kind;
	),

	TP_printk("pfn=0x%lx order=%u kind=%d",
		  __entry->pfn, __entry->order, __entry->kind)
);

TRACE_EVENT(cohort_block_free,

	TP_PROTO(unsigned long pfn, unsigned int order),

	TP_ARGS(pfn, order),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned int, order)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->order = order;
	),

	TP_printk("pfn=0x%lx order=%u", __entry->pfn, __entry->order)
);

TRACE_EVENT(cohort_block_dissolve,

	TP_PROTO(unsigned long pfn, unsigned int parked),

	TP_ARGS(pfn, parked),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned int, parked)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->parked = parked;
	),

	TP_printk("pfn=0x%lx parked=%u", __entry->pfn, __entry->parked)
);

TRACE_EVENT(cohort_domain_compact,

	TP_PROTO(int kind, unsigned int blocks, unsigned int moved,
		 unsigned long parked),

	TP_ARGS(kind, blocks, moved, parked),

	TP_STRUCT__entry(
		__field(int, kind)
		__field(unsigned int, blocks)
		__field(unsigned int, moved)
		__field(unsigned long, parked)
	),

	TP_fast_assign(
		__entry->kind = kind;
		__entry->blocks = blocks;
		__entry->moved = moved;
		__entry->parked = parked;
	),

	TP_printk("kind=%d blocks=%u moved=%u parked=%lu", __entry->kind,
		  __entry->blocks, __entry->moved, __entry->parked)
);

TRACE_EVENT(cohort_cache_sweep,

	TP_PROTO(unsigned long pfn, unsigned int dropped, unsigned int moved,
		 bool freed),

	TP_ARGS(pfn, dropped, moved, freed),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__field(unsigned int, dropped)
		__field(unsigned int, moved)
		__field(bool, freed)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->dropped = dropped;
		__entry->moved = moved;
		__entry->freed = freed;
	),

	TP_printk("pfn=0x%lx dropped=%u moved=%u freed=%d", __entry->pfn,
		  __entry->dropped, __entry->moved, __entry->freed)
);

TRACE_EVENT(cohort_class_change,

	TP_PROTO(pid_t pid, int from, int to),

	TP_ARGS(pid, from, to),

	TP_STRUCT__entry(
		__field(pid_t, pid)
		__field(int, from)
		__field(int, to)
	),

	TP_fast_assign(
		__entry->pid = pid;
		__entry->from = from;
		__entry->to = to;
	),

	TP_printk("pid=%d from=%d to=%d", __entry->pid, __entry->from, __entry->to)
);

TRACE_EVENT(cohort_quick_reclaim,

	TP_PROTO(unsigned long want, unsigned int order, unsigned long room,
		 unsigned long dropped, unsigned long unmapped, u64 ns),

	TP_ARGS(want, order, room, dropped, unmapped, ns),

	TP_STRUCT__entry(
		__field(unsigned long, want)
		__field(unsigned int, order)
		__field(unsigned long, room)
		__field(unsigned long, dropped)
		__field(unsigned long, unmapped)
		__field(u64, ns)
	),

	TP_fast_assign(
		__entry->want = want;
		__entry->order = order;
		__entry->room = room;
		__entry->dropped = dropped;
		__entry->unmapped = unmapped;
		__entry->ns = ns;
	),

	TP_printk("want=%lu order=%u room=%lu dropped=%lu unmapped=%lu ns=%llu",
		  __entry->want, __entry->order, __entry->room, __entry->dropped,
		  __entry->unmapped, __entry->ns)
);

TRACE_EVENT(cohort_pcpa_contig,

	TP_PROTO(unsigned long nr, int err, u64 ns),

	TP_ARGS(nr, err, ns),

	TP_STRUCT__entry(
		__field(unsigned long, nr)
		__field(int, err)
		__field(u64, ns)
	),

	TP_fast_assign(
		__entry->nr = nr;
		__entry->err = err;
		__entry->ns = ns;
	),

	TP_printk("nr=%lu err=%d ns=%llu", __entry->nr, __entry->err, __entry->ns)
);

TRACE_EVENT(cohort_pcpa_busy,

	TP_PROTO(unsigned long pfn, const char *reason, dev_t dev, unsigned long ino,
		 int refs),

	TP_ARGS(pfn, reason, dev, ino, refs),

	TP_STRUCT__entry(
		__field(unsigned long, pfn)
		__string(reason, reason)
		__field(dev_t, dev)
		__field(unsigned long, ino)
		__field(int, refs)
	),

	TP_fast_assign(
		__entry->pfn = pfn;
		__assign_str(reason);
		__entry->dev = dev;
		__entry->ino = ino;
		__entry->refs = refs;
	),

	TP_printk("pfn=0x%lx reason=%s dev=%d:%d ino=%lu refs=%d", __entry->pfn,
		  __get_str(reason), MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->ino, __entry->refs)
);

#endif /* _TRACE_COHORT_H */

#include <trace/define_trace.h>
