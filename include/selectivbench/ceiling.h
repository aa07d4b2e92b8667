// The best reachable accuracy: the exact ceiling, the exact filter, and baselines without a network.
#pragma once
#include "tasks/baselines.h"
#include "tasks/ceiling.h"
#include "tasks/filter.h"
