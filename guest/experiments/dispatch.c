// SPDX-License-Identifier: GPL-2.0
/* The experiment of the workload: the one file that knows all of them. */
#include "base/records.h"
#include "base/shared.h"
#include "experiments/dispatch.h"
#include "experiments/exit.h"
#include "experiments/orders.h"
#include "experiments/programs.h"
#include "experiments/scale.h"
#include "experiments/throughput.h"

void experiment_run(void)
{
	switch (sh->conf.exp.kind) {
	case EXPERIMENT_NONE:
		return;
	case EXPERIMENT_EXIT:
		exit_run();
		break;
	case EXPERIMENT_THROUGHPUT:
		throughput_run();
		break;
	case EXPERIMENT_BENCH:
		programs_run();
		break;
	case EXPERIMENT_ORDERS:
		orders_run();
		break;
	case EXPERIMENT_SCALE:
		scale_run();
		break;
	}
	records_flush();
}
