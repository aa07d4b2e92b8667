// The gate microscope: what a trained layer does with its gates on data frames and on gap frames.
#pragma once
#include <vector>

#include "models/network.h"
#include "runs/result.h"
#include "train/data.h"

namespace sb {

constexpr int kGateBins = 20;

struct GateRequest {
  Split split = Split::test;
  int64_t samples = 50;
  int batch = 50;
  int chunk = 1024;  // most frames a forward pass
  at::ScalarType type = at::kFloat;
};

struct GateReport {
  // Decay in [0, 1], write strength from 0 to 2, step size by its base-10 logarithm from 1e-4 to 10; what lies beyond
  // counts in the last bin (Mamba writes with its step, which has no bound). Selectivity: mean
  // over layers of mean(data) - mean(gap), of what is written and of what is forgotten (1 - decay); absent without
  // gaps. A selective model writes on data and keeps its state through gaps: both positive.
  GateFigures figures;
  std::vector<DecaySpectrum> decays;  // of each decay channel's mean over data frames
};

GateReport record_gates(const Network& network, const RunData& data, const TaskConfig& task,
                        const GateRequest& request);
// As many samples as keep the values looked at below some ten million.
int64_t affordable_gate_samples(const Network& network, const RunData& data, const TaskConfig& task, Split split,
                                int64_t most);

}  // namespace sb
