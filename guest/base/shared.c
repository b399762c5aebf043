// SPDX-License-Identifier: GPL-2.0
#include "base/shared.h"

struct shared *sh;
