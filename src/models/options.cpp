#include "models/options.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/format.h"
#include "base/suggest.h"
#include "base/text.h"
#include "models/registry.h"

namespace sb {
namespace {

int64_t whole(double expand, int64_t width, int64_t heads) {
  return static_cast<int64_t>(std::llround(expand * static_cast<double>(width) / static_cast<double>(heads)));
}

std::vector<const ModelRow*> owners_of(const std::string& name) {
  std::vector<const ModelRow*> owners;
  for (const auto& row : registry())
    if (row.find(name)) owners.push_back(&row);
  if (owners.empty())
    throw bad_input("model." + printable(name),
                    formatted("unknown switch, expected {}", join_or(nearest_first(name, switch_names()))));
  return owners;
}

std::vector<std::string> names_of(const std::vector<const ModelRow*>& rows) {
  std::vector<std::string> names;
  for (const ModelRow* row : rows) names.push_back(row->name);
  return names;
}

// Replaces expand_k and expand_v by the values that the integer head widths imply, so that different spellings (0.33,
// 0.3333) of one network are equal.
void round_to_heads(MixerOptions& options) {
  const auto share = [&](int64_t head) {
    return static_cast<double>(head * options.heads()) / static_cast<double>(options.width);
  };
  const int64_t keys = options.key_width(), values = options.value_width();
  options.set(switches::expand_k, share(keys));
  options.set(switches::expand_v, share(values));
}

}  // namespace

MixerOptions::MixerOptions(const std::vector<Switch>& switches) {
  for (const auto& each : switches) values_.emplace(each.name(), each.initial());
}

const SwitchValue* MixerOptions::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::string MixerOptions::text(std::string_view name) const {
  const auto* value = find(name);
  return value ? switch_text(*value) : "";
}

void MixerOptions::set(std::string_view name, const SwitchValue& value) {
  if (const auto found = values_.find(name); found != values_.end()) found->second = value;
}

int64_t MixerOptions::heads() const {
  return std::max<int64_t>(1, (*this)[switches::heads]);
}
int64_t MixerOptions::key_width() const {
  return whole((*this)[switches::expand_k], width, heads());
}
int64_t MixerOptions::value_width() const {
  return whole((*this)[switches::expand_v], width, heads());
}

int64_t default_heads(int64_t width) {
  if (width <= 512) return 4;
  int64_t heads = 4;
  while (heads < width && (width % heads != 0 || width / heads > 128)) heads *= 2;
  if (width % heads != 0)
    throw bad_input("model.width",
                    formatted("no power of two divides {} into heads of at most 128 channels; set heads", width));
  return heads;
}

std::vector<std::string> switch_names() {
  std::vector<std::string> names;
  for (const auto& row : registry())
    for (const auto& each : row.switches)
      if (std::find(names.begin(), names.end(), each.name()) == names.end()) names.push_back(each.name());
  return names;
}

void check_switch(const std::string& name, const std::string& text) {
  std::vector<std::pair<std::string, std::vector<const ModelRow*>>> ranges;  // each with the models that have it
  for (const ModelRow* row : owners_of(name)) {
    const Switch& own = *row->find(name);
    if (own.accepts(text)) return;
    const auto known =
        std::find_if(ranges.begin(), ranges.end(), [&](auto& each) { return each.first == own.range(); });
    if (known == ranges.end())
      ranges.push_back({own.range(), {row}});
    else
      known->second.push_back(row);
  }
  std::vector<std::string> expected;
  for (const auto& [range, rows] : ranges)
    expected.push_back(ranges.size() == 1 ? range : formatted("{} ({})", range, joined(names_of(rows), ", ")));
  throw bad_input("model." + name, formatted("expected {}, got '{}'", join_or(expected), printable(text)));
}

SwitchValue check_switch_of(const ModelRow& row, const std::string& name, const std::string& text) {
  const auto owners = owners_of(name);
  const Switch* found = row.find(name);
  if (!found)
    throw bad_input("model." + name, formatted("{} has no such switch, expected one of the models {}", row.name,
                                               join_or(names_of(owners))));
  return found->parse(text);
}

void check_options(const ModelRow& row, const MixerOptions& options) {
  for (const auto& each : row.switches)
    if (const auto* value = options.find(each.name()); !value || !each.takes(*value))
      throw bad_input("model." + each.name(),
                      formatted("expected {}, got {}", each.range(), options.text(each.name())));
  if (options.width % options.heads() != 0)
    throw bad_input("model.heads", formatted("width {} is not divisible by {} heads", options.width, options.heads()));
  const auto fits = [&](const NumberSwitch& expand) {
    const double width = options[expand] * static_cast<double>(options.width);
    const double heads = static_cast<double>(options.heads());
    if (options.find(expand.name) && (width < heads || std::abs(width / heads - std::round(width / heads)) > 1e-9))
      throw bad_input("model." + std::string(expand.name), formatted("{} * width {} is not a multiple of {} heads",
                                                                     options[expand], options.width, options.heads()));
  };
  fits(switches::expand_k);
  fits(switches::expand_v);
}

ModelConfig model_config(const std::string& name, int64_t width, const Switches& asked, int64_t layers, int64_t inputs,
                         int64_t outputs, double dropout, Residual residual) {
  const ModelRow& row = find_model(name);
  const auto in_range = [](const char* field, int64_t value, int64_t high) {
    if (value < 1 || value > high)
      throw bad_input(std::string("model.") + field, formatted("expected 1..{}, got {}", high, value));
  };
  in_range("width", width, 1 << 16);
  in_range("layers", layers, 1024);
  in_range("inputs", inputs, 1 << 24);
  in_range("outputs", outputs, 1 << 24);
  if (!(dropout >= 0 && dropout < 1))
    throw bad_input("model.dropout", formatted("expected a number in [0, 1), got {}", dropout));

  ModelConfig config{name, width, layers, inputs, outputs, dropout, MixerOptions(row.switches)};
  config.mixer.dropout = dropout;
  config.mixer.residual = residual;
  for (const auto& [key, text] : asked) config.mixer.set(key, check_switch_of(row, key, text));
  config.mixer.width = row.width ? row.width(width) : width;
  if (row.find(switches::heads.name) && !asked.contains(switches::heads.name))
    config.mixer.set(switches::heads, default_heads(width));
  check_options(row, config.mixer);
  round_to_heads(config.mixer);
  return config;
}

}  // namespace sb
