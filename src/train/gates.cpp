#include "train/gates.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "tasks/evaluate.h"
#include "train/loader.h"

namespace sb {
namespace {

constexpr std::string_view fixed_decay = "fixed_decay";

struct Scale {
  double low = 0, high = 1;
  bool log10 = false;
};

Scale scale_of(const std::string& gate) {
  if (gate == "write") return {0, 2, false};
  if (gate == "step") return {-4, 1, true};
  return {};
}

struct Histogram {
  std::array<int64_t, kGateBins> count{};
  double sum = 0;
  int64_t total = 0;

  void take(const Scale& scale, double value) {
    if (!std::isfinite(value)) return;
    const double at = scale.log10 ? std::log10(std::max(value, 1e-30)) : value;
    const double place = std::clamp((at - scale.low) / (scale.high - scale.low) * kGateBins, 0.0, kGateBins - 1.0);
    ++count[static_cast<size_t>(place)];
    sum += value;
    ++total;
  }
  double mean() const { return total == 0 ? 0 : sum / static_cast<double>(total); }
  GateCounts counts() const {
    GateCounts out;
    if (total == 0) return out;
    out.counts.assign(count.begin(), count.end());
    out.mean = mean();
    out.total = total;
    return out;
  }
};

struct Record {
  Histogram data, gap;
  std::vector<double> channel_sum;  // over data frames, one entry per channel
  int64_t frames = 0;               // data frames
};

// Adds the values [B, to - from, …] of frames [from, to), all entries of each frame.
void take_frames(const Batch& batch, int from, int to, const at::Tensor& values, const Scale& scale, Record& record) {
  const int64_t frames = to - from;
  const at::Tensor flat = values.to(at::kCPU, at::kDouble).reshape({batch.batch, frames, -1}).contiguous();
  const int64_t each = flat.size(2);
  const double* p = flat.data_ptr<double>();
  record.channel_sum.resize(static_cast<size_t>(each));
  for (int b = 0; b < batch.batch; ++b) {
    for (int t = from; t < to; ++t) {
      const size_t frame = static_cast<size_t>(b) * batch.frames + t;
      if (batch.element[frame] < 0) continue;
      const double* row = p + (b * frames + (t - from)) * each;
      Histogram& histogram = batch.gap[frame] ? record.gap : record.data;
      for (int64_t i = 0; i < each; ++i) histogram.take(scale, row[i]);
      if (batch.gap[frame]) continue;
      ++record.frames;
      for (int64_t i = 0; i < each; ++i) record.channel_sum[static_cast<size_t>(i)] += row[i];
    }
  }
}

// Decays that do not depend on data are recorded once.
void take_fixed(const at::Tensor& values, Record& record) {
  const at::Tensor flat = values.to(at::kCPU, at::kDouble).reshape({-1}).contiguous();
  record.channel_sum.assign(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
  record.frames = 1;
}

DecaySpectrum spectrum(int layer, const Record& record) {
  DecaySpectrum out;
  out.layer = layer;
  std::vector<double> means;
  for (const double sum : record.channel_sum) means.push_back(sum / static_cast<double>(record.frames));
  std::sort(means.begin(), means.end());
  for (const double q : {0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0}) {
    const double at = q * static_cast<double>(means.size() - 1);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, means.size() - 1);
    out.quantiles.push_back(means[below] + (at - static_cast<double>(below)) * (means[above] - means[below]));
  }
  return out;
}

using Records = std::map<std::pair<int64_t, std::string>, Record>;

void add_selectivity(const Records& records, GateFigures& out) {
  const auto mean_difference = [&](const char* gate) -> std::optional<double> {
    double sum = 0;
    int layers = 0;
    for (const auto& [key, record] : records) {
      if (key.second != gate || record.data.total == 0 || record.gap.total == 0) continue;
      sum += record.data.mean() - record.gap.mean();
      ++layers;
    }
    return layers == 0 ? std::nullopt : std::optional(sum / layers);
  };
  out.write_selectivity = mean_difference("write");
  if (const auto decay = mean_difference("decay")) out.forget_selectivity = -*decay;
}

}  // namespace

GateReport record_gates(const Network& network, const Task& task, const GateRequest& request) {
  Batch batch;
  Records records;
  const at::NoGradGuard no_grad;
  for (int64_t first = 0; first < request.samples; first += request.batch) {
    task.fill(request.split, static_cast<uint64_t>(first),
              static_cast<int>(std::min<int64_t>(request.batch, request.samples - first)), batch);
    NetworkState state;
    for (int from = 0; from < batch.frames; from += request.chunk) {
      if (request.stop && request.stop()) throw Stopped{};
      const int to = std::min(batch.frames, from + request.chunk);
      const GateRecorder recorder = [&](int64_t layer, std::string_view gate, const at::Tensor& values) {
        const std::string name(gate);
        if (gate == fixed_decay) return take_fixed(values, records[{layer, name}]);
        take_frames(batch, from, to, values, scale_of(name), records[{layer, name}]);
      };
      Pass pass;
      pass.gates = &recorder;
      pass.state = from == 0 && to == batch.frames ? nullptr : &state;
      network.hidden(dense_frames(batch, from, to, request.type).to(network.parameters().flat().device()), pass);
    }
  }
  GateReport report;
  for (const auto& [key, record] : records) {
    const auto& [layer, gate] = key;
    const Scale scale = scale_of(gate);
    if (gate != fixed_decay) {
      report.figures.gates.push_back({static_cast<int>(layer), gate, scale.low, scale.high, scale.log10,
                                      record.data.counts(), record.gap.counts()});
    }
    const bool finite = std::all_of(record.channel_sum.begin(), record.channel_sum.end(),
                                    [](double sum) { return std::isfinite(sum); });
    if ((gate == "decay" || gate == fixed_decay) && record.frames > 0 && !record.channel_sum.empty() && finite) {
      report.decays.push_back(spectrum(static_cast<int>(layer), record));
    }
  }
  add_selectivity(records, report.figures);
  return report;
}

int64_t affordable_gate_samples(const Network& network, const Task& task, Split split, int64_t most) {
  constexpr double values = 1e7;
  Batch frames;
  task.fill(split, 0, 1, frames);
  const ModelConfig& config = network.config();
  const double each = static_cast<double>(frames.real_frames(0)) * static_cast<double>(config.mixer.width) *
                      static_cast<double>(config.layers);
  return static_cast<int64_t>(std::clamp(values / each, 1.0, static_cast<double>(most)));
}

}  // namespace sb
