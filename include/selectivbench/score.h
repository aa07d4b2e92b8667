// The metric: evaluate (a Predictor on a task) and Tally (predictions batch by batch), accuracy, loss and breakdowns.
#pragma once
#include "tasks/evaluate.h"
#include "tasks/metric.h"
