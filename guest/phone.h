/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The phone: what its processes share.
 *
 * init maps one struct shared before it forks anything; every process finds
 * its configuration, its mailbox and the record ring there. All times are
 * CLOCK_MONOTONIC nanoseconds. Nothing reads the host: no wall clock, no
 * random device, no addresses as data, so that one seed gives one run.
 */
#ifndef PHONE_H
#define PHONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record_kinds.h"

#define CGROUPS "/sys/fs/cgroup"
#ifndef PAGE
#define PAGE 4096UL		/* make's PAGE_SIZE says otherwise */
#endif
/* Pages, one at least, for the bytes of n pages of 4 KiB. */
#define PAGES(n) ((n) * 4096UL < PAGE ? 1 : (n) * 4096UL / PAGE)
#define PAGE_KB (PAGE / KB)
#define KB 1024UL
#define MB (1024UL * 1024UL)
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

#define MAX_SLOTS 128
#define MAX_WRITES 128
#define MAX_LAUNCHES 20000
#define MAX_MINFREE 6
#define RING_SIZE (2 * MB)
#define NO_APP (-1)
#define MAX_ROLES 8
#define NO_ROLE (-1)
#define MAX_BENCHES 32
#define MAX_ROUNDS 1000

/* oom_score_adj as Android's ProcessList.java writes it */
#define ADJ_NATIVE (-1000)
#define ADJ_FOREGROUND 0
#define ADJ_HOME 600
#define ADJ_PREVIOUS 700
#define ADJ_CACHED 900
#define ADJ_CACHED_MAX 999

/* ---- rng.c ---- */
struct rng {
	uint64_t s;
};

void rng_seed(struct rng *r, uint64_t seed, uint64_t stream);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n);
uint64_t rng_range(struct rng *r, uint64_t lo, uint64_t hi);
uint64_t rng_skewed(struct rng *r, uint64_t n);

/* ---- conf.c ---- */
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

/* ---- the shared block ---- */
enum op { OP_NONE, OP_START, OP_RESUME, OP_USE, OP_BACKGROUND, OP_WORK };

/*
 * A slot is one process of the phone. Its mailbox holds one command: the
 * activity manager writes op, arg and then seq; the process answers by
 * setting done = seq. So seq == done means idle.
 */
struct slot {
	uint32_t seq;
	uint32_t done;
	uint32_t op;
	uint32_t launch;		/* number of the launch it works for */
	int32_t pid;			/* 0: not running; written by zygote */
	int32_t adj;
	uint32_t lmkd_killed;		/* pid lmkd killed, 0 if none */
	uint64_t majflt;
	uint64_t cpu_ns;		/* it ran so far */
	uint64_t last_used;		/* launch number, for LRU order */
	uint32_t buf_done;		/* answers of the buffer allocator */
	int32_t buf_error;
	uint64_t work_bytes, work_ns;	/* memory pressure it made, and how long that took */
	uint64_t work_cpu_ns;		/* CPU time of that */
	uint64_t held_kb, held_free_kb;	/* heap it holds or last held, free memory of the machine then */
};

/* Work that page faults are counted by. */
enum faulting { FAULTS_FOREGROUND, FAULTS_BACKGROUND, FAULTS_SYSTEM, NR_FAULTING };

struct shared {
	struct conf conf;
	struct slot slot[MAX_SLOTS];
	uint32_t am_event;		/* bumped whenever am should look */
	uint32_t busy;			/* a launch is being served */
	uint32_t launch;		/* current launch number */
	uint32_t fatal;
	uint32_t stress_stop;		/* the launches are done */
	uint32_t stress_over;		/* processes may die now */
	uint32_t camera_opens;		/* launch whose camera asks for its buffers now */
	uint64_t media_at;		/* bytes of media read so far */
	uint64_t camera_stalls;		/* of the camera and of its buffers' service */
	uint64_t majflt[NR_FAULTING];	/* of all slots so far, those that are gone included */
	int32_t zygote_pipe[2];
	int32_t gralloc_pipe[2];
	int32_t lmkd_pipe[2];
	/* record ring, records.c */
	uint32_t ring_lock;
	uint32_t ring_used;
	char ring[RING_SIZE];
};

extern struct shared *sh;

/* ---- util.c ---- */
uint64_t now_ns(void);
void sleep_ns(uint64_t ns);
void wait_scaled_ms(uint64_t ms);
void sleep_until(uint64_t ns);
void futex_wait(uint32_t *word, uint32_t seen, uint64_t timeout_ns);
void futex_wake(uint32_t *word);
void bump(uint32_t *word);
void fatal(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
ssize_t slurp(const char *path, char *buf, size_t size);
void meminfo_read(char *text, size_t size);
long long meminfo_kb(const char *text, const char *name);
int spit(const char *path, const char *value);
void set_knob(const char *path, const char *value);
bool storage_appears(const char *dev);
int cgroup_make(const char *name, const char *controller);
void set_adj(int pid, int adj);
void set_name(const char *name);
uint64_t vmstat_value(const char *text, const char *name);
uint64_t read_vmstat(const char *name);

/* ---- records.c ---- */
void records_open(void);
void record(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void records_flush(void);
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- switches.c ---- */
void switches_record(void);

/* ---- swap.c ---- */
void swap_on(void);

/* ---- heap.c ---- */
struct heap {
	char *base;
	uint64_t max;			/* pages mapped */
	uint64_t used;			/* pages below are or were touched */
};

void heap_init(struct heap *h, uint64_t max_kb);
void heap_grow(struct heap *h, struct rng *r, uint64_t pages);
void heap_trim(struct heap *h, struct rng *r, uint64_t pages);
void heap_churn(struct heap *h, struct rng *r, uint64_t pages);
void heap_touch(struct heap *h, struct rng *r);
void heap_show(struct heap *h, uint64_t from, uint64_t pages);
void think(struct rng *r);

/* ---- files.c ---- */
struct mapped {
	const volatile char *base;
	uint64_t pages;
	int fd;
};

void file_open(struct mapped *m, const char *path);
void file_touch(struct mapped *m, struct rng *r, uint64_t pages);
void file_read(struct mapped *m, struct rng *r, uint64_t pages);
void db_write(const char *name, struct rng *r, uint64_t writes);
void content_write(const char *name, struct rng *r, uint32_t launch, uint64_t pages);
void media_read(struct rng *r, uint64_t kb);
extern struct mapped system_image;

/* ---- process.c: the loop of every process forked by zygote ---- */
void process_run(int slot) __attribute__((noreturn));
bool slot_idle(const struct slot *s);

/* ---- app.c, service.c ---- */
struct app {
	int slot;
	uint32_t launch;		/* the one it works for now */
	const struct profile *prof;
	struct heap heap;
	struct mapped code, res;
};

void app_start(struct app *a, struct rng *r);
void app_resume(struct app *a, struct rng *r);
void app_use(struct app *a, struct rng *r);
void app_background(struct app *a, struct rng *r);
void app_work(struct app *a, struct rng *r);
void service_start(struct app *a, struct rng *r);
void service_work(struct app *a, struct rng *r);

/* ---- judge.c ---- */
void scroll_begin(struct app *a);
void scroll_end(struct app *a);
void judge_record(uint32_t launch, int apps);

/* ---- role.c, pressure.c, messages.c ---- */
void roles_setup(void);
void roles_record(void);
void role_enter(int index);
void role_borrow(int index);
bool role_protected(int index);
uint64_t role_vnode_kb(const struct role *role, const char *file);
void pressure_start(int slot);
void pressure_record(uint32_t launch);
void messages_show(const struct profile *p);

/* ---- allocator.c ---- */
enum buf_op { BUF_ALLOC, BUF_CAMERA, BUF_GPU, BUF_GPU_AGE, BUF_FREE, BUF_FREE_ALL };

struct buf_req {
	uint32_t op;
	int32_t slot;
	uint64_t bytes;
};

void allocator_main(void) __attribute__((noreturn));
int buffer_alloc(int slot, uint64_t bytes);
int buffer_camera(int slot, uint64_t bytes);
int buffer_gpu(int slot, uint64_t bytes);
void buffer_free_async(int slot);
void buffer_free_all_async(int slot);
void buffers_build(const struct app *a, struct rng *r, uint64_t num, uint64_t den);

/* Cohort's files for the administrator. */
#define SCHEMES "/sys/kernel/mm/cohort/"
#define PCPA SCHEMES "pcpa/"
#define ENTITLED "/proc/self/cohort_entitled"
#define VNODES SCHEMES "vnode/"

/* ---- camera.c ---- */
struct camera_cost {
	uint64_t stalls, own;		/* entries into direct reclaim, the camera's own of them */
	uint64_t file, free;		/* pages */
	uint64_t in_kb, out_kb;		/* traffic to the flash */
};

bool camera_wanted(void);
bool camera_is(int slot);
void camera_open(int slot);
void camera_announce(int slot);
void camera_cost_begin(struct camera_cost *c);
void camera_cost_end(const struct camera_cost *a, int slot);
void area_record(uint32_t launch, const char *when);

/* ---- stalls.c ---- */
#define EVENTS "/sys/kernel/tracing/events/"
#define STALL_RECLAIM EVENTS "vmscan/mm_vmscan_direct_reclaim_begin/id"
#define STALL_COMPACT EVENTS "compaction/mm_compaction_begin/id"

int stall_counter(const char *tracepoint);
uint64_t stall_count(int fd);

/* ---- cma.c ---- */
bool cma_open(const char *heap);
void cma_begin(void);
uint64_t cma_end(uint64_t *busy);

/* ---- the other processes ---- */
void zygote_main(void) __attribute__((noreturn));
void zygote_fork(int slot);
void am_main(void) __attribute__((noreturn));
void am_notice(void);
void am_busy(bool busy);
void power_off(void) __attribute__((noreturn));
void lmkd_main(void) __attribute__((noreturn));
void lmkd_wake(void);
void churn_main(void) __attribute__((noreturn));

/* ---- sampler.c, map.c, bench.c ---- */
void sampler_hello(void);
void sampler_sample(uint32_t launch, int alive, int cached);
void sampler_moment(const char *when);
void sampler_sizes(void);
size_t sampler_buddy(char *p, size_t size);
void sampler_owned(char *p, size_t size);
void map_record(uint32_t launch);
void map_area(uint32_t launch, uint64_t base_pfn, uint64_t pages);
void bench_fault(const char *when);

/* ---- crew.c ---- */
#define CREW_MAX 64

struct crew_work {
	void *(*begin)(uint64_t nr);	/* in worker nr; what its steps are given */
	void (*step)(void *own, uint64_t nr);
};

void crew_start(const struct crew_work *how, uint64_t workers, bool threads);
uint64_t crew_step(void);
uint64_t crew_busy_ns(void);
void crew_stop(void);

/* ---- experiment.c, exit.c, throughput.c, scale.c ---- */
void experiment_run(void);
void experiment_quiet(uint64_t ms);
void experiment_wait(uint32_t *done, uint32_t want, const pid_t *pids, uint64_t nr);
void *experiment_share(size_t size);
pid_t experiment_fork(const char *name, uint64_t first_cpu, uint64_t last_cpu);
char *experiment_map(uint64_t pages);
void experiment_touch(char *base, uint64_t pages);
void exit_run(void);
void throughput_run(void);
void scale_run(void);
void programs_run(void);
void orders_run(void);

/* ---- profile.c ---- */
void profile_start(void);
void profile_report(void);

/* ---- storms.c ---- */
void storm_processes(void);
bool storm_bomb_prepare(void);
bool storm_hog_prepare(void);
void storm_bomb(void);
void storm_hog(void);
void storm_bad_page(void);
bool storm_cma_prepare(void);
void storm_cma(void);
bool storm_area_prepare(void);
void storm_area(void);

/* ---- stress.c ---- */
bool stress_wanted(void);
void stress_baseline(void);
void stress_main(void) __attribute__((noreturn));
void stress_finish(void) __attribute__((noreturn));

#endif
