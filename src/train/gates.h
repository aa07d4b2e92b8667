// The gate microscope: what a trained layer does with its gates on data frames and on gap frames.
#pragma once
#include <array>
#include <map>
#include <string>
#include <vector>

#include "models/network.h"
#include "train/data.h"
#include "train/results.h"

namespace sb {

constexpr int kGateBins = 20;

// Values of one gate over frames of one kind. Decay and write strengths lie in [0,1] (write of DeltaProduct in [0,2]);
// step sizes are binned by their base-10 logarithm from 1e-4 to 1e1.
struct GateHistogram {
  std::array<int64_t, kGateBins> count{};
  double sum = 0;
  int64_t total = 0;
  double mean() const { return total == 0 ? 0 : sum / static_cast<double>(total); }
};

struct GateRecord {
  int64_t layer = 0;
  std::string gate;  // "decay", "write" or "step"
  GateHistogram data, gap;
};

struct GateReport {
  std::vector<GateRecord> gates;
  // Mean over layers of mean(data) - mean(gap): how much more is written, and how much more is forgotten (1 - decay),
  // on data than in gaps. A selective model writes on data and keeps its state through gaps: both positive.
  double write_selectivity = 0, forget_selectivity = 0;
  bool has_write = false, has_forget = false;
};

GateReport record_gates(const Network& network, const RunData& data, Split split, int64_t samples, int batch,
                        at::ScalarType type);
Json gates_json(const GateReport& report);

}  // namespace sb
