/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cohort's events, each once: its identifier, and its name in /proc/vmstat.  Included
 * where events get their numbers and where they get their names, with COHORT_EVENT()
 * as that place wants it.
 */
#ifdef CONFIG_COHORT
COHORT_EVENT(COHORT_REFILL, "cohort_refill")
COHORT_EVENT(COHORT_FALLBACK, "cohort_fallback")
COHORT_EVENT(COHORT_BLOCK_FREE, "cohort_block_free")
COHORT_EVENT(COHORT_BREACH, "cohort_breach")
COHORT_EVENT(COHORT_COMPACT, "cohort_compact")
COHORT_EVENT(COHORT_MIGRATE, "cohort_migrate")
COHORT_EVENT(COHORT_PACK, "cohort_pack")
COHORT_EVENT(COHORT_PACK_FAIL, "cohort_pack_fail")
COHORT_EVENT(COHORT_SWEEP, "cohort_sweep")
COHORT_EVENT(COHORT_SWEEP_FREE, "cohort_sweep_free")
COHORT_EVENT(COHORT_SWEEP_DROP, "cohort_sweep_drop")
#endif
#ifdef CONFIG_COHORT_PCPA
COHORT_EVENT(COHORT_PCPA_CACHE, "cohort_pcpa_cache")
COHORT_EVENT(COHORT_PCPA_LENT, "cohort_pcpa_lent")
COHORT_EVENT(COHORT_PCPA_PULLED, "cohort_pcpa_pulled")
COHORT_EVENT(COHORT_PCPA_GIVEN, "cohort_pcpa_given")
COHORT_EVENT(COHORT_PCPA_CLIENT, "cohort_pcpa_client")
COHORT_EVENT(COHORT_PCPA_QUICK, "cohort_pcpa_quick")
COHORT_EVENT(COHORT_PCPA_RECLAIMED, "cohort_pcpa_reclaimed")
COHORT_EVENT(COHORT_PCPA_REFAULT, "cohort_pcpa_refault")
COHORT_EVENT(COHORT_PCPA_MIGRATED, "cohort_pcpa_migrated")
COHORT_EVENT(COHORT_PCPA_CONTIG_OK, "cohort_pcpa_contig_ok")
COHORT_EVENT(COHORT_PCPA_CONTIG_FAIL, "cohort_pcpa_contig_fail")
COHORT_EVENT(COHORT_PCPA_BUSY, "cohort_pcpa_busy")
#endif
#undef COHORT_EVENT
