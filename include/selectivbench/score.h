// The metric: evaluate() scores a Predictor on a task, MetricAccumulator scores predictions batch by batch.
#pragma once
#include "tasks/evaluate.h"
