// Folders of made-up runs, and the page made from them.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>

#include "../base/temporary_folder.h"
#include "../report/synthetic.h"
#include "base/file.h"
#include "page/build.h"
#include "page/html.h"
#include "store/run_store.h"

namespace sb::test {

inline void add_breakdowns_to(Measurement& m, const std::string& key) {
  m.elements = 4000;
  for (int i = 0; i < 12; ++i) m.by_position.emplace_back(noise_of(key + "p" + std::to_string(i)));
  for (int g = 0; g < 4; ++g) m.by_gap_frame.push_back({double(g), noise_of(key + "g" + std::to_string(g)), 100 + g});
  for (int g = 0; g < 3; ++g) m.by_since_certain.push_back({double(g), .5, 10});
  for (int g = 0; g < 3; ++g) m.by_entropy.push_back({g * .1, .25, 10});
  for (int s = 0; s < 6; ++s) m.confusion.push_back({s, 90 + s, 7, 3});
}

inline Result rich_result(const ResolvedConfig& config) {
  Result r = result_of(config);
  r.states = 10;
  r.topological_entropy = 1 + noise_of("entropy" + std::to_string(r.grammar_seed));
  add_breakdowns_to(*r.test, r.run_id);
  r.baselines = BaselineFigures{.04, {}, {.2, .5, .7, .8}, 4, .01, 1000, 100};
  r.gates = GateFigures{};
  for (const int layer : {0, 1})
    r.gates->gates.push_back({layer, "decay", 0, 1, false, {{1, 2, 3, 4}, .6, 10}, {{4, 3, 2, 1}, .4, 10}});
  r.gates->write_selectivity = .25;
  r.gates->forget_selectivity = -.125;
  r.decays.push_back({0, {0, .1, .3, .5, .7, .9, 1}});
  SampleRecord sample{0, 2, {}};
  sample.elements.push_back({1, 1, 1, {-1}, {{1, .75}, {2, .25}}, {{1, 1}}});
  sample.elements.push_back({0, 0, 2, {-1, 3}, {{2, .5}, {0, .25}}, {{0, 1}}});
  r.samples = {sample, sample, sample};
  r.samples[1].index = 1;
  r.samples[2].index = 2;
  r.made = Provenance{};
  r.made->version = "0.2.0";
  r.made->device = "cpu";
  r.made->threads = 2;
  r.made->total_seconds = 12.5;
  r.made->tokens_per_second = 1234.5;
  return r;
}

// A finished run in ROOT/<id>: its folder.
inline std::string finish_run(const std::string& root, const ResolvedConfig& config, Result result) {
  RunStore store(root, config);
  for (int64_t u = 0; u < 100; ++u) store.add({u, "train", {{"loss", 5 - .01 * static_cast<double>(u)}, {"lr", .001}}});
  for (const int64_t u : {50, 100}) store.add({u, "valid", {{"accuracy", static_cast<double>(u) / 200}, {"loss", 1}}});
  const double weight = 2;
  const bool done = result.status == "done";
  store.finish(std::move(result),
               done ? std::vector<NamedBytes>{{"weight", "F64", {1}, &weight}} : std::vector<NamedBytes>{});
  return store.folder();
}

inline ResolvedConfig small_config(const std::string& model, int seed, int task = 1, const std::string& rest = "") {
  return resolve_text("[model]\nname = \"" + model +
                      "\"\n[grammar]\nvocab = 6\nambiguities = 2\ndepth = 3\n[task]\nnumber = " + std::to_string(task) +
                      "\n[train]\nupdates = 100\n[run]\nseed = " + std::to_string(seed) + "\n" + rest);
}

inline std::string finish_small(const std::string& root, const std::string& model, int seed, int task = 1,
                                const std::string& rest = "") {
  const ResolvedConfig config = small_config(model, seed, task, rest);
  return finish_run(root, config, rich_result(config));
}

inline PageData page_of(const std::string& root, const std::string& page_folder = "") {
  PageSource source({root}, "report DIR");
  return make_page(source.read(), {{"runs/made-up"}, page_folder, "cff-version: 1.2.0", false});
}

inline std::string html_of(const PageData& data) {
  PageSettings settings;
  settings.charts = false;
  return html_page(built_in_parts(), data.title, page_json(data, settings), false);
}

inline const Figure* find_figure(const PageData& data, const std::string& kind) {
  for (const auto& figure : data.figures)
    if (figure.kind == kind) return &figure;
  return nullptr;
}

}  // namespace sb::test
