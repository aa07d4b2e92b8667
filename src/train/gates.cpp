#include "train/gates.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "train/network_predictor.h"

namespace sb {
namespace {

constexpr double kStepLow = -4, kStepHigh = 1;  // log10 of the binned step sizes

size_t bin_of(const std::string& gate, double value) {
  double place = value;
  if (gate == "write") place = value / 2;
  if (gate == "step") place = (std::log10(std::max(value, 1e-30)) - kStepLow) / (kStepHigh - kStepLow);
  return static_cast<size_t>(std::clamp(static_cast<int>(place * kGateBins), 0, kGateBins - 1));
}

void take(GateHistogram& histogram, const std::string& gate, double value) {
  ++histogram.count[bin_of(gate, value)];
  histogram.sum += value;
  ++histogram.total;
}

// Values [B,T,…]: every entry of a frame counts.
void take_frames(const Batch& batch, const at::Tensor& values, GateRecord& record) {
  const at::Tensor flat = values.to(at::kDouble).reshape({batch.batch, batch.frames, -1}).contiguous();
  const int64_t each = flat.size(2);
  const double* p = flat.data_ptr<double>();
  for (size_t f = 0; f < batch.symbol.size(); ++f) {
    if (batch.element[f] < 0) continue;
    GateHistogram& histogram = batch.gap[f] ? record.gap : record.data;
    for (int64_t i = 0; i < each; ++i) take(histogram, record.gate, p[static_cast<int64_t>(f) * each + i]);
  }
}

Json histogram_json(const GateHistogram& h) {
  return {{"mean", h.mean()}, {"values", h.total}, {"counts", h.count}};
}

Json edges(const std::string& gate) {
  Json out = Json::array();
  for (int i = 0; i <= kGateBins; ++i) {
    const double at = static_cast<double>(i) / kGateBins;
    out.push_back(gate == "step"    ? std::pow(10.0, kStepLow + at * (kStepHigh - kStepLow))
                  : gate == "write" ? 2 * at
                                    : at);
  }
  return out;
}

}  // namespace

GateReport record_gates(const Network& network, const RunData& data, Split split, int64_t samples, int batch,
                        at::ScalarType type) {
  std::map<std::pair<int64_t, std::string>, GateRecord> records;
  for (int64_t first = 0; first < samples; first += batch) {
    Batch frames;
    data.maker->make(split, static_cast<uint64_t>(first), static_cast<int>(std::min<int64_t>(batch, samples - first)),
                     frames);
    const TensorBatch tensors = to_tensors(std::move(frames), *data.maker, type);
    const GateRecorder recorder = [&](int64_t layer, std::string_view gate, const at::Tensor& values) {
      GateRecord& record = records[{layer, std::string(gate)}];
      record.layer = layer;
      record.gate = gate;
      take_frames(tensors.frames, values, record);
    };
    const at::NoGradGuard no_grad;
    Pass pass;
    pass.gates = &recorder;
    network.hidden(tensors.input, pass);
  }
  GateReport report;
  int writes = 0, decays = 0;
  for (auto& [key, record] : records) {
    const double difference = record.data.mean() - record.gap.mean();
    if (record.gate == "write") report.write_selectivity += difference, ++writes;
    if (record.gate == "decay") report.forget_selectivity -= difference, ++decays;
    report.gates.push_back(std::move(record));
  }
  if (writes > 0) report.write_selectivity /= writes;
  if (decays > 0) report.forget_selectivity /= decays;
  report.has_write = writes > 0;
  report.has_forget = decays > 0;
  return report;
}

Json gates_json(const GateReport& report) {
  Json gates = Json::array();
  for (const GateRecord& record : report.gates) {
    gates.push_back({{"layer", record.layer},
                     {"gate", record.gate},
                     {"edges", edges(record.gate)},
                     {"data", histogram_json(record.data)},
                     {"gap", histogram_json(record.gap)}});
  }
  Json index = Json::object();
  if (report.has_write) index["write"] = report.write_selectivity;
  if (report.has_forget) index["forget"] = report.forget_selectivity;
  return {{"gates", gates}, {"selectivity", index}};
}

}  // namespace sb
