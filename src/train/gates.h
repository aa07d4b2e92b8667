// Records the gate values of a trained network, separately for data frames and gap frames.
#pragma once
#include <functional>
#include <vector>

#include "config/data.h"
#include "models/network.h"
#include "store/result.h"

namespace sb {

constexpr int kGateBins = 20;

struct GateRequest {
  Split split = Split::test;
  int64_t samples = 50;
  int batch = 50;
  int chunk = 1024;  // maximum frames per forward pass
  at::ScalarType type = at::kFloat;
  std::function<bool()> stop;  // polled between forward passes; if true, record_gates throws Stopped
};

struct GateReport {
  // Histograms of decay over [0, 1], write strength over [0, 2], and step size over 1e-4..10 on a logarithmic scale.
  // Values outside count in the outermost bin. (A delta rule's write is at most 2. In Mamba the step is also the write
  // strength, which has no bound.)
  // Selectivity: mean over layers of mean(data) - mean(gap), for the write strength and for the forgotten share
  // (1 - decay); absent without gaps. Both are positive in a selective model: it writes on data frames and keeps its
  // state through gaps.
  GateFigures figures;
  std::vector<DecaySpectrum> decays;  // quantiles over the decay channels, each averaged over data frames
};

GateReport record_gates(const Network& network, const Task& task, const GateRequest& request);
// Returns a number of samples in 1..most that keeps the recorded gate values below about ten million.
int64_t affordable_gate_samples(const Network& network, const Task& task, Split split, int64_t most);

}  // namespace sb
