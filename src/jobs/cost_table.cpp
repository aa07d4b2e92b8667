#include "jobs/cost_table.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "config/data.h"

namespace sb {
namespace {

Error fault(const std::string& what, const TomlValue& value) {
  return bad_input("rates", what + ", " + value.place.text());
}

// Every key of the file is required.
const TomlValue& member(const TomlValue& table, const std::string& key) {
  if (table.table())
    for (const auto& each : *table.table())
      if (each.key == key) return each.value;
  throw fault("expected a table with '" + key + "'", table);
}

double number(const TomlValue& value, double low, double high) {
  const auto* whole = std::get_if<int64_t>(&value.content);
  const auto* real = std::get_if<double>(&value.content);
  const double out = whole ? static_cast<double>(*whole) : real ? *real : NAN;
  if (!(out >= low && out <= high)) throw fault("expected a number, got " + shown(value), value);
  return out;
}

std::string text(const TomlValue& value) {
  if (!value.text()) throw fault("expected text, got " + shown(value), value);
  return *value.text();
}

const TomlValue::List& list(const TomlValue& value) {
  if (!value.list()) throw fault("expected a list, got " + shown(value), value);
  return *value.list();
}

DeviceKind device(const TomlValue& value) {
  for (const DeviceKind each : {DeviceKind::cpu, DeviceKind::cuda})
    if (text(value) == to_string(each)) return each;
  throw fault("expected cpu or cuda, got " + shown(value), value);
}

// In a line of rates, the i-th width and rate are those of the i-th model.
void add_machine(const TomlValue& block, std::vector<MeasuredRate>& out) {
  MeasuredRate row;
  const auto whole = [&](const char* key) { return static_cast<int64_t>(number(member(block, key), 1, 1e6)); };
  row.device = device(member(block, "device"));
  row.eval_speed = number(member(block, "eval_speed"), 1e-3, 1e3);
  row.start_seconds = number(member(block, "start_seconds"), 0, 1e6);
  row.layers = whole("layers");
  row.inputs = whole("inputs");
  row.outputs = whole("outputs");
  const auto& models = list(member(block, "models"));
  for (const auto& line : list(member(block, "rates"))) {
    const auto &widths = list(member(line, "widths")), &rates = list(member(line, "rates"));
    if (widths.size() != models.size() || rates.size() != models.size())
      throw fault("expected as many widths and rates as models", line);
    row.frames = number(member(line, "frames"), 1, 1e9);
    for (size_t i = 0; i < models.size(); ++i) {
      row.model = text(models[i]);
      row.width = static_cast<int64_t>(number(widths[i], 1, 65536));
      row.rate = number(rates[i], 1e-3, 1e15);
      out.push_back(row);
    }
  }
}

// What a run has in common with others, from the most to the least similar.
std::array<std::string, 3> likeness(const RunConfig& run, double flops) {
  const std::string device = formatted("{} {}", to_string(run.train.device), to_string(run.train.precision));
  const std::string model = device + " " + run.model.name;
  return {formatted("{} {} {}", model, flops, run.train.batch), model, device};
}

double distance(const MeasuredRate& row, double flops, double frames) {
  return std::abs(std::log(row.flops / flops)) + std::abs(std::log(row.frames / frames));
}

}  // namespace

RunFrames frames_of(const RunConfig& run) {
  const TaskSize task = size_of_task(run, run.eval.points);
  RunFrames out;
  out.sample = task.train_frames;
  out.training = static_cast<double>(run.train.updates) * static_cast<double>(run.train.batch) * task.train_frames;
  const double periodic = run.eval.every > 0 ? static_cast<double>((run.train.updates - 1) / run.eval.every) : 0;
  out.evaluation = ((periodic + 1) * run.eval.valid_samples + run.eval.test_samples) * task.test_frames;
  for (const double frames : task.point_frames) out.evaluation += run.eval.grid_samples * frames;
  return out;
}

CostTable::CostTable(std::string_view text_of_file, const std::string& path, const Flops& flops) {
  const TomlValue document = parse_toml(text_of_file, path);
  for (const auto& block : list(member(document, "machine"))) {
    machines_.push_back({text(member(block, "name")), text(member(block, "source"))});
    add_machine(block, rates_);
  }
  for (auto& row : rates_) row.flops = flops(row);
  std::erase_if(rates_, [](const MeasuredRate& row) { return !(row.flops > 0); });
}

CostTable CostTable::shipped(const std::string& folder, const Flops& flops) {
  if (folder.empty()) return {};
  const std::string path = folder + "/rates.toml";
  return CostTable(read_config_text(path), path, flops);
}

void CostTable::learn(const RunConfig& run, const RunFrames& frames, double flops, const TimeTaken& taken) {
  const auto by_rates = seconds_on(run.train.device, run, frames, flops);
  const bool on_cpu = run.train.device == DeviceKind::cpu;
  const auto sharing = on_cpu ? taken.threads : taken.shared_by;
  if (taken.diverged || !sharing || !(taken.seconds > 0) || !by_rates) return;
  const auto count = static_cast<double>(std::max<int64_t>(1, *sharing));
  for (const auto& key : likeness(run, flops)) {
    measured_[key].taken += taken.seconds * (on_cpu ? count / rated_cores : 1 / count);
    measured_[key].by_rates += *by_rates;
  }
}

std::optional<double> CostTable::seconds(const RunConfig& run, const RunFrames& frames, double flops,
                                         double left) const {
  const auto by_rates = seconds_on(run.train.device, run, frames, flops, left);
  if (by_rates)
    for (const auto& key : likeness(run, flops))
      if (const auto like = measured_.find(key); like != measured_.end())
        return *by_rates * like->second.taken / like->second.by_rates;
  return by_rates;
}

std::optional<double> CostTable::seconds_on(DeviceKind device, const RunConfig& run, const RunFrames& frames,
                                            double flops, double left) const {
  if (!(flops > 0)) return std::nullopt;
  const MeasuredRate* best = nullptr;
  const auto better = [&](const MeasuredRate& row) {
    if (row.device != device) return false;
    if (!best) return true;
    const double now = distance(row, flops, frames.sample), before = distance(*best, flops, frames.sample);
    const bool own = row.model == run.model.name, before_own = best->model == run.model.name;
    if (own != before_own) return own;
    // A rate of the same model if there is one. Otherwise, of the rates for similar FLOPs and sequence length, the one
    // with the fewest FLOPs per second.
    return own ? now < before
               : now < before - 1 || (now < before + 1 && row.rate * row.flops < best->rate * best->flops);
  };
  for (const auto& row : rates_)
    if (better(row)) best = &row;
  if (!best) return std::nullopt;
  const double rate = best->rate * best->flops / flops;
  return (left * frames.training + frames.evaluation / best->eval_speed) / rate + best->start_seconds;
}

}  // namespace sb
