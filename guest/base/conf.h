/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BASE_CONF_H
#define BASE_CONF_H

#include <stdbool.h>
#include <stdint.h>

#define MAX_SLOTS 128
#define MAX_WRITES 128
#define MAX_LAUNCHES 20000
#define MAX_MINFREE 6
#define MAX_ROLES 8
#define NO_ROLE (-1)
#define MAX_BENCHES 32
#define MAX_ROUNDS 1000

struct settings {
	uint64_t zygote_heap_kb;	/* preloaded heap, shared copy-on-write */
	uint64_t zygote_cow_kb;		/* part of it every child writes */
	uint64_t foreground_ms;		/* use of an app after its launch */
	uint64_t home_ms;		/* time on the home screen */
	uint64_t burst_pages;		/* faults between two short waits */
	uint64_t think_us;		/* mean of that wait */
	uint64_t extent_pages;		/* longest extent freed at once */
	uint64_t run_pages;		/* file pages touched in a row */
	uint64_t services_woken;	/* services that work during a launch */
	uint64_t service_churn_kb;	/* heap each of them turns over */
	uint64_t service_file_kb;	/* file pages each of them touches */
	uint64_t service_db_writes;	/* synced 4 KiB writes of each */
	uint64_t cached_woken;		/* cached apps that wake to sync */
	uint64_t cached_churn_kb;
	uint64_t system_file_kb;	/* size of the shared system image */
	uint64_t churn_forks;		/* short-lived processes a launch */
	uint64_t churn_threads;		/* short-lived threads a launch */
	uint64_t churn_pipes;		/* pipes refilled a launch */
	uint64_t churn_files;		/* files made and removed a launch */
	uint64_t churn_pool;		/* kernel objects kept alive */
	uint64_t gpu_piece_kb;		/* one page-sized GPU allocation group */
	uint64_t lmkd_psi;		/* 0 minfree levels, 1 PSI */
	uint64_t lmkd_poll_ms;		/* period while something is launching */
	uint64_t lmkd_idle_ms;		/* period otherwise */
	uint64_t lmkd_psi_partial_ms;	/* "some" stall in one second */
	uint64_t lmkd_psi_complete_ms;	/* "full" stall in one second */
	uint64_t lmkd_thrashing_pct;	/* refaults, % of the file cache */
	uint64_t minfree_kb[MAX_MINFREE];
	uint64_t minfree_adj[MAX_MINFREE];
	uint64_t normal_restart;	/* launches between two restarts of normal ones */
	uint64_t launch_timeout_ms;
	uint64_t fault_bench_mb;
	uint64_t map_cell_pages;	/* 0: no physical maps */
	uint64_t maps;			/* physical maps a run */
	uint64_t time_scale;		/* waits are divided by this */
	uint64_t drop_caches_at;	/* launch before which caches are dropped, 0: none */
	uint64_t pressure_from;		/* first launch under memory pressure, 0: none */
	uint64_t pressure_nice;		/* of the processes that make it */
	uint64_t pressure_cpus;		/* so many, the last ones, are theirs; 0: all */
	uint64_t scan_kb;		/* media read after boot */
	uint64_t watch_kb;		/* and in each use of an app */
};

enum class { CLASS_PERSISTENT, CLASS_SERVICE, CLASS_NORMAL, CLASS_APP };

struct profile {
	char name[32];
	enum class class;
	int adj;
	bool home;
	uint64_t heap_kb;		/* faulted in at the start */
	uint64_t heap_max_kb;		/* growth stops here */
	uint64_t grow_kb;		/* growth in each use */
	uint64_t churn_pct;		/* heap freed and refaulted in a use */
	uint64_t trim_pct;		/* heap freed on leaving the foreground */
	uint64_t code_kb, res_kb;	/* sizes of its files */
	uint64_t cold_file_kb;		/* file pages touched by a cold start */
	uint64_t warm_file_kb;		/* and by a resume */
	uint64_t buf_min_kb, buf_max_kb;	/* buffers built for one launch */
	uint64_t piece_min_kb, piece_max_kb, piece_align_kb;
	uint64_t gpu_kb;		/* page-sized GPU memory */
	uint64_t db_writes;		/* synced 4 KiB writes a launch */
	uint64_t stream_kb;		/* content written and read once in a use */
	uint64_t threads;
	uint64_t messages;		/* in its SQLite database */
	uint64_t measured;		/* its launches are what is looked at */
	uint64_t flood_kb;		/* of the pressure file, read a launch */
	uint64_t zero_kb, zero_every;	/* a heap zeroed and freed, in every nth launch */
	uint64_t burn_ms;		/* CPU time it takes instead, without memory */
	int role;			/* index into conf.role[], NO_ROLE */
};

/* The workload's experiment, done after the launches. */
enum experiment_kind {
	EXPERIMENT_NONE, EXPERIMENT_EXIT, EXPERIMENT_THROUGHPUT, EXPERIMENT_BENCH,
	EXPERIMENT_ORDERS, EXPERIMENT_SCALE,
};

struct experiment {
	enum experiment_kind kind;
	uint64_t programs;		/* started together */
	uint64_t pages;			/* each touches, or each worker at a time */
	uint64_t period_us;		/* a program waits so long after each */
	uint64_t cpus;			/* programs may run on the first so many */
	uint64_t rounds;		/* a worker touches its pages so often */
	uint64_t quiet_ms;		/* rest before and after */
	uint64_t hold_kb;		/* memory taken while programs run */
	uint64_t fill_kb;		/* media in the page cache before a program */
	uint64_t turns;			/* of the schemes on one kernel; 0: as booted */
	uint64_t tasks, step;		/* at most so many, each time so many times more */
};

/* A program of the distribution, its arguments, and whether its result counts. */
struct program {
	char name[32];
	bool fresh, counts;
	char line[512];
};

/* The wall around a role's memory; ROLE_NONE under policies that know none. */
struct role {
	char name[16];
	enum { ROLE_NONE, ROLE_VNODE, ROLE_CGROUP } kind;
	char vnode[16];
	uint64_t nodes;			/* mask of the virtual node's NUMA nodes */
	uint64_t min_kb, low_kb;	/* protection of the cgroup */
	uint64_t max_kb;		/* its limit, 0: none */
};

struct write_line {
	char path[160];
	char value[96];
};

struct conf {
	char name[64];
	uint64_t seed;
	uint64_t launches;
	bool real_time;
	struct settings set;
	struct experiment exp;
	char swap[64];			/* device, empty for none */
	uint64_t fill_bytes;		/* of a heap page that cannot be compressed */
	struct profile prof[MAX_SLOTS];
	int nr_prof;
	struct write_line write[MAX_WRITES];
	int nr_write;
	struct role role[MAX_ROLES];
	int nr_roles;
	int native_role;		/* of the processes that init starts */
	struct program program[MAX_BENCHES];
	int nr_programs;
	struct camera {
		int app;
		char heap[32];		/* in /dev/dma_heap */
		uint64_t bytes;		/* of a start, 0: there is no camera */
		uint64_t piece;
		uint64_t woken;		/* processes that work while it opens */
		bool announce;		/* the kernel hears of a start before the app runs */
	} camera;
	bool entitled;			/* what makes buffers is a client of the area */
	struct judge {
		uint64_t frames;	/* scrolled in each use, 0: nothing is judged */
		uint64_t frame_us;	/* from one to the next */
		uint64_t heap_pages;	/* of the app's heap that a frame shows */
		uint64_t file_pages;	/* and of its code and pictures */
	} judge;
	uint32_t round[MAX_ROUNDS];	/* launches with which all apps had their turn */
	int nr_rounds;
	uint8_t launch[MAX_LAUNCHES];	/* index into prof[] */
};

void conf_load(struct conf *conf, const char *path);

#endif
