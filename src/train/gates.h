// The gate microscope: what a trained layer does with its gates on data frames and on gap frames.
#pragma once
#include <functional>
#include <vector>

#include "models/network.h"
#include "runs/data.h"
#include "runs/result.h"

namespace sb {

constexpr int kGateBins = 20;

struct GateRequest {
  Split split = Split::test;
  int64_t samples = 50;
  int batch = 50;
  int chunk = 1024;  // most frames a forward pass
  at::ScalarType type = at::kFloat;
  std::function<bool()> stop;  // polled between forward passes; true: throws Stopped
};

struct GateReport {
  // Histograms over decay in [0, 1], write strength in [0, 2], step size by its base-10 logarithm from 1e-4 to 10; what
  // lies outside counts in the outermost bin. (A delta rule's write is at most 2; where the step itself writes, as in
  // Mamba, it has no bound.) Selectivity: mean over layers of mean(data) - mean(gap), of what is written and of what is
  // forgotten (1 - decay); absent without gaps. A selective model writes on data and keeps its state through gaps: both
  // positive.
  GateFigures figures;
  std::vector<DecaySpectrum> decays;  // of each decay channel's mean over data frames
};

GateReport record_gates(const Network& network, const RunData& data, const TaskConfig& task,
                        const GateRequest& request);
// As many samples as keep the values looked at below some ten million.
int64_t affordable_gate_samples(const Network& network, const RunData& data, const TaskConfig& task, Split split,
                                int64_t most);

}  // namespace sb
