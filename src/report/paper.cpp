#include "report/paper.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "base/number.h"
#include "config/config_file.h"

namespace sb {
namespace {

struct Size {
  int64_t width;
  int64_t d_state;  // 0: the model has none
};

// Figures and sizes for tasks 1, 2 and 3.
struct Row {
  const char* model;
  std::array<PaperFigure, 3> figure;
  std::array<Size, 3> size;
  std::map<std::string, std::string> switches;  // switches of the network other than d_state and heads
};

const std::vector<Row>& paper_rows() {
  static const std::vector<Row> rows = {
      {"delta_net",
       {{{.50, .01}, {.41, .01}, {.35, .001}}},
       {{{1296, 0}, {1296, 0}, {1296, 0}}},
       {{"expand_k", "1"}, {"expand_v", "2"}, {"negative_eigenvalues", "off"}, {"output_gate", "off"}}},
      {"gla",
       {{{.75, .01}, {.68, .05}, {.50, .01}}},
       {{{1152, 0}, {1152, 0}, {1152, 0}}},
       {{"expand_k", "1"}, {"expand_v", "2"}, {"complementary", "off"}, {"a_min", "0"}, {"output_gate", "on"}}},
      {"mamba",
       {{{.89, .009}, {.71, .01}, {.63, .08}}},
       {{{1296, 64}, {1152, 64}, {1296, 64}}},
       {{"complementary", "on"}, {"a_min", "0"}, {"output_gate", "on"}}},
      {"mamba2",
       {{{.92, .007}, {.67, .01}, {.64, .01}}},
       {{{1296, 128}, {1152, 64}, {1296, 64}}},
       {{"complementary", "on"}, {"a_min", "0"}, {"output_gate", "on"}}},
      {"gated_delta_net",
       {{{.87, .01}, {.76, .01}, {.57, .008}}},
       {{{1152, 0}, {1152, 0}, {1152, 0}}},
       {{"expand_k", "1"},
        {"expand_v", "2"},
        {"negative_eigenvalues", "off"},
        {"a_min", "0"},
        {"output_gate", "on"},
        {"delta", "on"}}},
      {"gated_delta_product",
       {{{.87, .008}, {.74, .02}, {.61, .01}}},
       {{{768, 0}, {768, 0}, {768, 0}}},
       {{"expand_k", "1"},
        {"expand_v", "2"},
        {"householder_factors", "4"},
        {"negative_eigenvalues", "on"},
        {"a_min", "0"},
        {"output_gate", "on"}}},
      {"transformer",
       {{{.86, .005}, {.77, .01}, {.67, .07}}},
       {{{768, 0}, {768, 0}, {768, 0}}},
       {{"mlp", "4"}, {"rope_base", "1000"}, {"conv", "0"}}},
  };
  return rows;
}

const Row* find_row(const std::string& model) {
  for (const Row& row : paper_rows())
    if (model == row.model) return &row;
  return nullptr;
}

// All keys that the paper fixes for a run of this task; the program's defaults are the paper's values.
const std::map<std::string, std::string>& fixed_settings(int task) {
  static const auto all = [] {
    std::array<std::map<std::string, std::string>, 3> out;
    // Dropout and residual depend on the protocol; the paper's figure is shown for either.
    static const std::set<std::string> free = {"grammar.seed",     "train.seed",         "train.lr",
                                               "train.warmup",     "train.device",       "train.precision",
                                               "train.accumulate", "train.dropout_until"};
    for (int number = 1; number <= 3; ++number) {
      const auto run =
          resolve(parse_settings("[task]\nnumber = " + std::to_string(number) + "\n", "paper"), {}, "paper");
      for (const auto& [key, value] : config_map(run.canonical)) {
        const bool data = key.starts_with("grammar.") || key.starts_with("task.") || key.starts_with("train.");
        if ((data && !free.contains(key)) || key == "model.layers") out[static_cast<size_t>(number - 1)][key] = value;
      }
    }
    return out;
  }();
  return all[static_cast<size_t>(task - 1)];
}

std::string switch_plain(std::string text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text == "true" ? "on" : text == "false" ? "off" : text;
}

bool same_switches(const Result& result, const Row& row, const Size& size) {
  std::map<std::string, std::string> wanted = row.switches;
  wanted["short_conv"] = "on";
  if (!wanted.contains("mlp")) wanted["mlp"] = "0";
  wanted["heads"] = size.width == 768 ? "8" : "16";
  if (size.d_state > 0) wanted["d_state"] = std::to_string(size.d_state);
  bool d_state_given = false;
  for (const auto& [key, value] : result.config) {
    if (!key.starts_with("model.switch ")) continue;
    const std::string name = key.substr(13);
    d_state_given |= name == "d_state";
    const auto it = wanted.find(name);
    if (it == wanted.end() || !same_value(switch_plain(value), it->second)) return false;
  }
  // If it is not given, it has the model's default: 64 for Mamba, 128 for Mamba2.
  return d_state_given || size.d_state == 0 || size.d_state == (result.model == "mamba" ? 64 : 128);
}

bool one_of(const Result& result, const char* key, std::initializer_list<double> values) {
  const auto it = result.config.find(key);
  const auto number = it == result.config.end() ? std::nullopt : parse_finite(it->second);
  return number && std::find(values.begin(), values.end(), *number) != values.end();
}

}  // namespace

bool same_value(const std::string& a, const std::string& b) {
  const auto x = parse_finite(a), y = parse_finite(b);
  return x && y ? *x == *y : a == b;
}

std::optional<bool> is_paper_switch(const std::string& model, const std::string& name, const std::string& value) {
  const Row* row = find_row(model);
  if (!row) return std::nullopt;
  const std::string plain = switch_plain(value);
  if (name == "d_state")
    return std::any_of(row->size.begin(), row->size.end(),
                       [&](const Size& size) { return same_value(plain, std::to_string(size.d_state)); });
  const auto it = row->switches.find(name);
  if (it != row->switches.end()) return same_value(plain, it->second);
  return (name == "short_conv" && plain == "on") || (name == "mlp" && same_value(plain, "0"));
}

std::optional<PaperFigure> paper_figure(const Result& result) {
  const Row* row = find_row(result.model);
  if (!row || result.task < 1 || result.task > 3) return std::nullopt;
  const auto task = static_cast<size_t>(result.task - 1);
  // The Transformer's 648 is the same network as its 768.
  const bool width = result.width == row->size[task].width || (result.model == "transformer" && result.width == 648);
  if (!width || !same_switches(result, *row, row->size[task])) return std::nullopt;
  if (!one_of(result, "train.lr", {5e-4, 1e-3, 2e-3}) || !one_of(result, "train.warmup", {476, 1000}))
    return std::nullopt;
  for (const auto& [key, value] : fixed_settings(result.task)) {
    const auto it = result.config.find(key);
    if (it == result.config.end() || it->second != value) return std::nullopt;
  }
  constexpr int64_t papers_samples = 1000;
  const auto& test = result.test;
  if (!test || test->samples < papers_samples || (test->split != "test" && test->split != "reference"))
    return std::nullopt;
  // Rejects keys that the paper's runs do not have, e.g. a user's own automaton or another gap law.
  for (const auto& [key, value] : result.config) {
    const bool data = key.starts_with("grammar.") || key.starts_with("task.");
    if (data && key != "grammar.seed" && !fixed_settings(result.task).contains(key)) return std::nullopt;
    if (key == "train.order_seed" || key == "train.schedule" || key == "train.position_stretch")
      return std::nullopt;  // the paper has none of them
  }
  return row->figure[task];
}

std::optional<PaperFigure> paper_table(const std::string& model, int task) {
  const Row* row = find_row(model);
  if (!row || task < 1 || task > 3) return std::nullopt;
  return row->figure[static_cast<size_t>(task - 1)];
}

std::vector<std::string> paper_models() {
  std::vector<std::string> names;
  for (const Row& row : paper_rows()) names.emplace_back(row.model);
  return names;
}

int model_rank(const std::string& model) {
  const Row* row = find_row(model);
  return static_cast<int>(row ? row - paper_rows().data() : std::ssize(paper_rows()));
}

int paper_width(const std::string& model) {
  const Row* row = find_row(model);
  return row ? static_cast<int>(row->size[0].width) : 1024;
}

}  // namespace sb
