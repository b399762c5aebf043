/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Made by `python -m cohort.results.record_schema` of src/cohort/results/records.toml:
 * change that. KEY... is text that begins with a comma, or nothing.
 */
#ifndef RECORD_KINDS_H
#define RECORD_KINDS_H

/* t, files, sra */
#define RECORD_SWITCHES \
	"{\"r\":\"switches\"" ",\"t\":%llu" ",\"files\":{%s}" ",\"sra\":%s" "}"

/* t, version=1, release, machine, page_size, cmdline, pages, cpus, vm_names */
#define RECORD_HELLO \
	"{\"r\":\"hello\"" ",\"t\":%llu" ",\"version\":1" ",\"release\":\"%s\"" \
	",\"machine\":\"%s\"" ",\"page_size\":%ld" ",\"cmdline\":\"%s\"" \
	",\"pages\":%ld" ",\"cpus\":%ld" ",\"vm_names\":[%s]" "}"

/* t, text */
#define RECORD_NOTE \
	"{\"r\":\"note\"" ",\"t\":%llu" ",\"text\":\"%s\"" "}"

/* t, when, pages, ns */
#define RECORD_FAULT \
	"{\"r\":\"fault\"" ",\"t\":%llu" ",\"when\":\"%s\"" ",\"pages\":%llu" \
	",\"ns\":%llu" "}"

/* t, n, app, kind, ns, cpu_ns, majflt */
#define RECORD_LAUNCH \
	"{\"r\":\"launch\"" ",\"t\":%llu" ",\"n\":%u" ",\"app\":\"%s\"" \
	",\"kind\":\"%s\"" ",\"ns\":%llu" ",\"cpu_ns\":%llu" ",\"majflt\":%llu" "}"

/* t, n, app, bytes, ok, ns, zero_ns, pieces..., other */
#define RECORD_BUFFER \
	"{\"r\":\"buffer\"" ",\"t\":%llu" ",\"n\":%u" ",\"app\":\"%s\"" \
	",\"bytes\":%llu" ",\"ok\":%s" ",\"ns\":%llu" ",\"zero_ns\":%s" "%s" \
	",\"other\":%llu" "}"

/* t, n, app, pid, adj, class, by=oom, free_kb, file_kb, parked_kb */
#define RECORD_KILL_OOM \
	"{\"r\":\"kill\"" ",\"t\":%llu" ",\"n\":%u" ",\"app\":\"%s\"" ",\"pid\":%d" \
	",\"adj\":%d" ",\"class\":\"%s\"" ",\"by\":\"oom\"" ",\"free_kb\":%llu" \
	",\"file_kb\":%llu" ",\"parked_kb\":%llu" "}"

/* t, n, app, pid, adj, class, by=lmkd, free_kb, file_kb, parked_kb, ns, buddy, */
/* owned... */
#define RECORD_KILL_LMKD \
	"{\"r\":\"kill\"" ",\"t\":%llu" ",\"n\":%u" ",\"app\":\"%s\"" ",\"pid\":%d" \
	",\"adj\":%d" ",\"class\":\"%s\"" ",\"by\":\"lmkd\"" ",\"free_kb\":%llu" \
	",\"file_kb\":%llu" ",\"parked_kb\":%llu" ",\"ns\":%llu" ",\"buddy\":[%s]" \
	"%s" "}"

/* t, n, buddy, owned..., vm, alive, cached, cpu */
#define RECORD_SAMPLE \
	"{\"r\":\"sample\"" ",\"t\":%llu" ",\"n\":%u" ",\"buddy\":[%s]" "%s" \
	",\"vm\":[%s]" ",\"alive\":%d" ",\"cached\":%d" ",\"cpu\":[%s]" "}"

/* t, n, cell_pages, base_pfn=0, cells, owners... */
#define RECORD_MAP \
	"{\"r\":\"map\"" ",\"t\":%llu" ",\"n\":%u" ",\"cell_pages\":%llu" \
	",\"base_pfn\":0" ",\"cells\":\"%s\"" "%s" "}"

/* t, when, buddy, owned..., vm */
#define RECORD_MOMENT \
	"{\"r\":\"moment\"" ",\"t\":%llu" ",\"when\":\"%s\"" ",\"buddy\":[%s]" "%s" \
	",\"vm\":[%s]" "}"

/* t, i, pages, ns, p50_ns, p99_ns, max_ns, clock_ns */
#define RECORD_PROGRAM \
	"{\"r\":\"program\"" ",\"t\":%llu" ",\"i\":%llu" ",\"pages\":%llu" \
	",\"ns\":%llu" ",\"p50_ns\":%u" ",\"p99_ns\":%u" ",\"max_ns\":%u" \
	",\"clock_ns\":%llu" "}"

/* t, i, blocks */
#define RECORD_OWN \
	"{\"r\":\"own\"" ",\"t\":%llu" ",\"i\":%llu" ",\"blocks\":[%s]" "}"

/* t, kind, cpus, pages, ns, free_ns */
#define RECORD_THROUGHPUT \
	"{\"r\":\"throughput\"" ",\"t\":%llu" ",\"kind\":\"%s\"" ",\"cpus\":%llu" \
	",\"pages\":%llu" ",\"ns\":%llu" ",\"free_ns\":%llu" "}"

/* scheme, op, kind, workers, n, ns */
#define RECORD_SCALE \
	"{\"r\":\"scale\"" ",\"scheme\":\"%s\"" ",\"op\":\"%s\"" ",\"kind\":\"%s\"" \
	",\"workers\":%llu" ",\"n\":%llu" ",\"ns\":%llu" "}"

/* op, kind, workers, line */
#define RECORD_LOCK \
	"{\"r\":\"lock\"" ",\"op\":\"%s\"" ",\"kind\":\"%s\"" ",\"workers\":%llu" \
	",\"line\":\"%s\"" "}"

/* function, ticks */
#define RECORD_PROFILE \
	"{\"r\":\"profile\"" ",\"function\":\"%s\"" ",\"ticks\":%llu" "}"

/* app, role, nodes */
#define RECORD_ROLE \
	"{\"r\":\"role\"" ",\"app\":\"%s\"" ",\"role\":\"%s\"" ",\"nodes\":%llu" "}"

/* n, node, blocks */
#define RECORD_NODE \
	"{\"r\":\"node\"" ",\"n\":%u" ",\"node\":%u" ",\"blocks\":[%s]" "}"

/* n, bytes, ns, cpu_ns, held_kb, want_kb, free_kb */
#define RECORD_WORK \
	"{\"r\":\"work\"" ",\"n\":%u" ",\"bytes\":%llu" ",\"ns\":%llu" \
	",\"cpu_ns\":%llu" ",\"held_kb\":%llu" ",\"want_kb\":%llu" \
	",\"free_kb\":%llu" "}"

/* t, n, app, heap, busy, whole, bytes, ok, ns, zero_ns, pieces..., other */
#define RECORD_CAMERA \
	"{\"r\":\"camera\"" ",\"t\":%llu" ",\"n\":%u" ",\"app\":\"%s\"" \
	",\"heap\":\"%s\"" ",\"busy\":%llu" ",\"whole\":%s" ",\"bytes\":%llu" \
	",\"ok\":%s" ",\"ns\":%llu" ",\"zero_ns\":%s" "%s" ",\"other\":%llu" "}"

/* n, app, measured, stalls, own_stalls, file_before, file_after, free_before, */
/* in_kb, out_kb */
#define RECORD_COST \
	"{\"r\":\"cost\"" ",\"n\":%u" ",\"app\":\"%s\"" ",\"measured\":%s" \
	",\"stalls\":%llu" ",\"own_stalls\":%llu" ",\"file_before\":%llu" \
	",\"file_after\":%llu" ",\"free_before\":%llu" ",\"in_kb\":%llu" \
	",\"out_kb\":%llu" "}"

/* n, when, size_kb, free_kb, cache_kb, client_kb, other_kb */
#define RECORD_AREA \
	"{\"r\":\"area\"" ",\"n\":%u" ",\"when\":\"%s\"" ",\"size_kb\":%llu" \
	",\"free_kb\":%llu" ",\"cache_kb\":%llu" ",\"client_kb\":%llu" \
	",\"other_kb\":%llu" "}"

/* n, base_pfn, pages, runs */
#define RECORD_LEFT \
	"{\"r\":\"left\"" ",\"n\":%u" ",\"base_pfn\":%llu" ",\"pages\":%llu" \
	",\"runs\":[%s]" "}"

/* order, path, blocks, ns, max_ns */
#define RECORD_ORDER \
	"{\"r\":\"order\"" ",\"order\":%llu" ",\"path\":\"%s\"" ",\"blocks\":%llu" \
	",\"ns\":%llu" ",\"max_ns\":%llu" "}"

/* t, name, ns, free_before, free_after, file_before, file_after, in_kb, */
/* out_kb, output */
#define RECORD_BENCH \
	"{\"r\":\"bench\"" ",\"t\":%llu" ",\"name\":\"%s\"" ",\"ns\":%llu" \
	",\"free_before\":%llu" ",\"free_after\":%llu" ",\"file_before\":%llu" \
	",\"file_after\":%llu" ",\"in_kb\":%llu" ",\"out_kb\":%llu" \
	",\"output\":\"%s\"" "}"

/* kind, counts */
#define RECORD_RECLAIM \
	"{\"r\":\"reclaim\"" ",\"kind\":\"%s\"" ",\"counts\":[%s]" "}"

/* n, apps */
#define RECORD_ROUND \
	"{\"r\":\"round\"" ",\"n\":%u" ",\"apps\":%d" "}"

/* t, n, app, frames, late, worst_ns */
#define RECORD_SCROLL \
	"{\"r\":\"scroll\"" ",\"t\":%llu" ",\"n\":%u" ",\"app\":\"%s\"" \
	",\"frames\":%llu" ",\"late\":%llu" ",\"worst_ns\":%llu" "}"

/* n, available_kb, foreground, background, system */
#define RECORD_JUDGE \
	"{\"r\":\"judge\"" ",\"n\":%u" ",\"available_kb\":%llu" \
	",\"foreground\":%llu" ",\"background\":%llu" ",\"system\":%llu" "}"

/* t, name */
#define RECORD_CASE \
	"{\"r\":\"case\"" ",\"t\":%llu" ",\"name\":\"%s\"" "}"

/* t, line */
#define RECORD_OUT \
	"{\"r\":\"out\"" ",\"t\":%llu" ",\"line\":\"%s\"" "}"

/* t, name, status, lines, ns */
#define RECORD_RESULT \
	"{\"r\":\"result\"" ",\"t\":%llu" ",\"name\":\"%s\"" ",\"status\":%d" \
	",\"lines\":%lu" ",\"ns\":%llu" "}"

/* t, text */
#define RECORD_FATAL \
	"{\"r\":\"fatal\"" ",\"t\":%llu" ",\"text\":\"%s\"" "}"

/* t, ok=true, launches */
#define RECORD_END \
	"{\"r\":\"end\"" ",\"t\":%llu" ",\"ok\":true" ",\"launches\":%llu" "}"

/* t, ok=true */
#define RECORD_END_SUITE \
	"{\"r\":\"end\"" ",\"t\":%llu" ",\"ok\":true" "}"

#endif
