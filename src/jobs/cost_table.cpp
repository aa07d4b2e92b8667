#include "jobs/cost_table.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "config/data.h"

namespace sb {
namespace {

Error fault(const std::string& what, const Place& place) {
  return bad_input("rates", what + ", " + place.text());
}

double number_of(const TomlValue& value, const std::string& key, double low, double high) {
  const auto* whole = std::get_if<int64_t>(&value.content);
  const auto* real = std::get_if<double>(&value.content);
  const double number = whole ? static_cast<double>(*whole) : real ? *real : low - 1;
  if (!(number >= low && number <= high))
    throw fault("expected a number for " + key + ", got " + shown(value), value.place);
  return number;
}

std::string text_of(const TomlMember& member) {
  if (!member.value.text()) throw fault("expected text, got " + shown(member.value), member.value.place);
  return *member.value.text();
}

const TomlValue::List& list_of(const TomlMember& member) {
  if (!member.value.list()) throw fault("expected a list, got " + shown(member.value), member.value.place);
  return *member.value.list();
}

DeviceKind device_named(const TomlMember& member) {
  const std::string name = text_of(member);
  if (name == to_string(DeviceKind::cpu)) return DeviceKind::cpu;
  if (name == to_string(DeviceKind::cuda)) return DeviceKind::cuda;
  throw fault("expected cpu or cuda, got '" + printable(name) + "'", member.value.place);
}

// Adds the rates of one line; the i-th width and rate belong to the i-th model.
void add_line(const TomlValue& line, const MeasuredRate& machine, const std::vector<std::string>& models,
              std::vector<MeasuredRate>& out) {
  if (!line.table()) throw fault("expected {widths, frames, rates}", line.place);
  std::vector<double> widths, rates;
  MeasuredRate row = machine;
  for (const auto& member : *line.table()) {
    if (member.key == "frames") row.frames = number_of(member.value, "frames", 1, 1e9);
    if (member.key == "widths")
      for (const auto& item : list_of(member)) widths.push_back(number_of(item, "a width", 1, 65536));
    if (member.key == "rates")
      for (const auto& item : list_of(member)) rates.push_back(number_of(item, "a rate", 1e-3, 1e15));
  }
  if (widths.size() != models.size() || rates.size() != models.size() || row.frames <= 0)
    throw fault("expected frames, and as many widths and rates as models", line.place);
  for (size_t i = 0; i < models.size(); ++i) {
    row.model = models[i];
    row.width = static_cast<int64_t>(widths[i]);
    row.rate = rates[i];
    out.push_back(row);
  }
}

void add_machine(const TomlValue& block, std::vector<MeasuredMachine>& machines, std::vector<MeasuredRate>& out) {
  if (!block.table()) throw fault("expected blocks [[machine]]", block.place);
  MeasuredMachine machine;
  MeasuredRate row;
  std::vector<std::string> models;
  const TomlMember* rates = nullptr;
  for (const auto& member : *block.table()) {
    if (member.key == "device") {
      machine.device = row.device = device_named(member);
    } else if (member.key == "name") {
      machine.name = text_of(member);
    } else if (member.key == "source") {
      machine.source = text_of(member);
    } else if (member.key == "eval_speed") {
      row.eval_speed = number_of(member.value, member.key, 1e-3, 1e3);
    } else if (member.key == "start_seconds") {
      row.start_seconds = number_of(member.value, member.key, 0, 1e6);
    } else if (member.key == "models") {
      for (const auto& item : list_of(member)) models.push_back(text_of({"model", item.place, item}));
    } else if (member.key == "layers") {
      row.layers = static_cast<int64_t>(number_of(member.value, member.key, 1, 1024));
    } else if (member.key == "inputs") {
      row.inputs = static_cast<int64_t>(number_of(member.value, member.key, 1, 1e6));
    } else if (member.key == "outputs") {
      row.outputs = static_cast<int64_t>(number_of(member.value, member.key, 1, 1e6));
    } else if (member.key == "rates") {
      rates = &member;
    } else {
      throw fault("unknown key '" + printable(member.key) + "'" +
                      did_you_mean(member.key, {"device", "name", "source", "eval_speed", "start_seconds", "models",
                                                "layers", "inputs", "outputs", "rates"}),
                  member.place);
    }
  }
  if (!rates || models.empty() || row.layers == 0 || row.inputs == 0 || row.outputs == 0)
    throw fault("expected models, layers, inputs, outputs and rates", block.place);
  for (const auto& line : list_of(*rates)) add_line(line, row, models, out);
  machines.push_back(std::move(machine));
}

double distance(const MeasuredRate& row, double flops, double frames) {
  return std::abs(std::log(row.flops / flops)) + std::abs(std::log(row.frames / frames));
}

}  // namespace

RunFrames frames_of(const RunConfig& run) {
  RunFrames out;
  out.training =
      static_cast<double>(run.train.updates) * static_cast<double>(run.train.batch) * size_of_task(run).train_frames;
  const double periodic = run.eval.every > 0 ? static_cast<double>((run.train.updates - 1) / run.eval.every) : 0;
  out.evaluation = ((periodic + 1) * run.eval.valid_samples + run.eval.test_samples) * size_of_task(run).test_frames;
  for (const int point : run.eval.points)
    out.evaluation += run.eval.grid_samples * size_of_task(run, point).test_frames;
  return out;
}

CostTable::CostTable(std::string_view text, const std::string& path, const Flops& flops) {
  const TomlValue document = parse_toml(text, path);
  for (const auto& member : *document.table()) {
    if (member.key != "machine") throw fault("unknown section '" + printable(member.key) + "'", member.place);
    for (const auto& block : list_of(member)) add_machine(block, machines_, rates_);
  }
  for (auto& row : rates_) row.flops = flops(row);
  std::erase_if(rates_, [](const MeasuredRate& row) { return !(row.flops > 0); });
}

CostTable CostTable::shipped(const std::string& folder, const Flops& flops) {
  if (folder.empty()) return {};
  const std::string path = folder + "/rates.toml";
  return CostTable(read_config_text(path), path, flops);
}

std::optional<double> CostTable::seconds(const RunConfig& run, double flops, double left) const {
  return seconds_on(run.train.device, run, flops, left);
}

std::optional<double> CostTable::seconds_on(DeviceKind device, const RunConfig& run, double flops, double left) const {
  if (!(flops > 0)) return std::nullopt;
  const double frames = size_of_task(run).train_frames;
  const MeasuredRate* best = nullptr;
  const auto better = [&](const MeasuredRate& row) {
    if (row.device != device) return false;
    if (!best) return true;
    const double now = distance(row, flops, frames), before = distance(*best, flops, frames);
    const bool own = row.model == run.model.name, before_own = best->model == run.model.name;
    if (own != before_own) return own;
    // Among other models of similar size, the one with the fewest FLOPs per second.
    return own ? now < before
               : now < before - 1 || (now < before + 1 && row.rate * row.flops < best->rate * best->flops);
  };
  for (const auto& row : rates_)
    if (better(row)) best = &row;
  if (!best) return std::nullopt;
  const double rate = best->rate * best->flops / flops;
  const RunFrames all = frames_of(run);
  return (left * all.training + all.evaluation / best->eval_speed) / rate + best->start_seconds;
}

}  // namespace sb
