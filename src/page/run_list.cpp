#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "page/parts.h"
#include "report/order.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr size_t longest_text = 10000;  // maximum bytes of text from files

std::string shown(std::string_view text) {
  if (text.size() <= longest_text) return one_line(text);
  return one_line(text.substr(0, longest_text)) + "…";
}

// Formats a number as in result.json, which may have more digits than the shortest form.
std::string file_digits(double value) {
  return Json(value).dump();
}

std::string percent_encoded(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~' || c == '/';
    out += plain ? std::string(1, c) : formatted("%{:02X}", byte);
  }
  return out;
}

// Relative, so that page and folders move together. "./" keeps a name with a colon from reading as a scheme.
std::optional<std::string> link_to(const std::string& folder, const std::string& page_folder) {
  if (page_folder.empty()) return std::nullopt;
  std::error_code failed;
  const fs::path from = fs::weakly_canonical(page_folder, failed), to = fs::weakly_canonical(folder, failed);
  const std::string path = to.lexically_relative(from).string();
  if (failed || path.empty()) return std::nullopt;
  return "./" + percent_encoded(path) + "/";
}

const char* state_of(const RunReport& report) {
  static constexpr const char* names[] = {"intact",  "without weights", "packed", "unfinished",
                                          "damaged", "older",           "newer"};
  return names[static_cast<size_t>(report.state)];
}

const char* standing_text(Standing standing) {
  static constexpr const char* texts[] = {"averaged: included in the cells of its row",
                                          "not chosen: another setting is better on valid",
                                          "not eligible: its setting lacks seeds that others have",
                                          "none chosen: no setting of its row could be chosen",
                                          "diverged: excluded from the means",
                                          "seed not common: not all compared settings have its seed"};
  return texts[static_cast<size_t>(standing)];
}

// Differences from the defaults. Needs the models, since only they define the defaults of switches.
std::vector<ConfigDifference> differences(const ConfigMap& config, const SwitchDefaults& defaults) {
  const auto value = [&](const char* key) {
    const auto at = config.find(key);
    return at == config.end() ? std::string() : at->second;
  };
  const std::string kind = value("task.kind");
  const std::string task = kind.empty() ? value("task.number") : kind;
  const ConfigMap& usual = default_settings(task);
  const std::string model = plain_value(value("model.name"));
  std::map<std::string, std::string> switches;
  if (defaults) switches = defaults(model, parse_integer(value("model.width")).value_or(0));
  std::vector<ConfigDifference> out;
  for (const auto& [key, text] : config) {
    if (key == "format") continue;
    if (key.starts_with("model.switch ")) {
      const std::string name = key.substr(13);
      const auto at = switches.find(name);
      const std::string plain = plain_value(text);
      const bool same = at != switches.end() ? at->second == plain : is_paper_switch(model, name, text).value_or(false);
      if (!same) out.push_back({"model." + shown(name), shown(plain), at == switches.end() ? "" : at->second});
      continue;
    }
    const auto at = usual.find(key);
    if (at != usual.end() && at->second == text) continue;
    out.push_back({shown(key), shown(plain_value(text)), at == usual.end() ? "" : plain_value(at->second)});
  }
  return out;
}

void add_result(const Result& r, PageRun& out) {
  out.id = shown(r.run_id);
  out.model = shown(r.model);
  out.task = task_name(r);
  out.label = shown(r.label);
  const auto accuracy = [](const std::optional<Measurement>& m) {
    return m ? std::optional(m->score()) : std::nullopt;
  };
  out.squared = (r.test && r.test->mse) || (r.valid && r.valid->mse);
  out.test = accuracy(r.test);
  out.valid = accuracy(r.valid);
  out.test_text = out.test ? file_digits(*out.test) : "–";
  out.valid_text = out.valid ? file_digits(*out.valid) : "–";
  if (r.test && r.test->ceiling)
    out.ceiling_text = r.test->ceiling->mse     ? "≥ " + file_digits(*r.test->ceiling->mse)
                       : r.test->ceiling->exact ? file_digits(r.test->ceiling->accuracy)
                                                : "≤ " + file_digits(r.test->ceiling->upper_bound);
  out.precision_text = shown(r.precision);
  out.updates_text = grouped(static_cast<uint64_t>(std::max<int64_t>(0, r.updates)));
  if (r.divergence)
    out.divergence_text =
        formatted("at update {}, {}, {}", r.divergence->update,
                  r.divergence->layer < 0 ? "encoder or decoder" : formatted("layer {}", r.divergence->layer),
                  shown(r.divergence->tensor));
  if (!r.made) return;
  const Provenance& made = *r.made;
  std::vector<std::string> machine, program;
  const auto add = [](std::vector<std::string>& to, const std::string& text) {
    if (!text.empty()) to.push_back(shown(text));
  };
  add(machine, made.device);
  add(machine, made.instructions);
  if (made.threads > 0) machine.push_back(formatted("{} thread{}", made.threads, made.threads == 1 ? "" : "s"));
  add(program, made.version + (made.commit.empty() ? "" : " (" + made.commit + ")"));
  add(program, made.compiler);
  add(program, made.libtorch.empty() ? "" : "libtorch " + made.libtorch);
  add(program, made.blas);
  out.machine_text = joined(machine, ", ");
  out.program_text = joined(program, ", ");
  out.wall = made.total_seconds;
  if (out.wall) out.wall_text = duration_text(*out.wall);
  out.speed = made.tokens_per_second;
  if (out.speed) out.speed_text = grouped(static_cast<uint64_t>(std::llround(*out.speed)));
  if (out.speed && made.shared_by.value_or(1) > 1) out.speed_text += formatted(" ({} runs at once)", *made.shared_by);
}

PageRun begin_run(const SourceRun& run, const std::string& page_folder, const SwitchDefaults& defaults) {
  const ReadRun& read = *run.read;
  PageRun out;
  out.folder = shown(read.report.folder);
  if (!run.in_archive) out.href = link_to(read.report.folder, page_folder);
  out.state = state_of(read.report);
  out.state_text = to_string(read.report.state);
  out.test_text = out.valid_text = out.ceiling_text = out.wall_text = out.speed_text = out.updates_text = "–";
  for (const auto& problem : read.report.problems) out.problems.push_back(shown(problem));
  if (!run.curves.fault.empty()) out.problems.push_back(shown(run.curves.fault));
  out.digest = run.digest;
  out.id = shown(read.report.run_id);
  if (read.run) {
    add_result(read.run->result, out);
    out.config = differences(read.run->result.config, defaults);
  } else {
    const auto value = [&](const char* key) {
      const auto at = read.config.find(key);
      return at == read.config.end() ? std::string() : plain_value(at->second);
    };
    out.model = value("model.name");
    for (const char* key : {"task.number", "task.kind"})
      if (const std::string task = value(key); !task.empty()) out.task = task;
    const std::string seed = value("grammar.seed");
    if (!seed.empty()) out.seeds_text = "seed " + seed;
    if (!read.config.empty()) out.config = differences(read.config, defaults);
    if (read.report.updates > 0)
      out.updates_text =
          formatted("{} of {}", grouped(static_cast<uint64_t>(std::max(read.report.update, run.curves.last))),
                    grouped(static_cast<uint64_t>(read.report.updates)));
  }
  return out;
}

}  // namespace

void add_runs(const Outline& outline, const std::string& page_folder, PageData& data) {
  const Rows& rows = outline.rows;
  PageCounts& counts = data.counts;
  std::set<std::string> placed;
  for (const size_t run : ordered_runs(rows, outline.labels)) {
    PageRun out = begin_run(outline.source_run(run), page_folder, rows.defaults);
    out.key = outline.keys[run];
    const size_t group = rows.group_of[run];
    out.series = outline.series[outline.series_of_group[group]].id;
    out.column = outline.columns[outline.own_column_of_group[group]].id;
    out.seeds_text = seeds_text(rows, run);
    out.standing = to_string(rows.standing[run]);
    out.standing_text = standing_text(rows.standing[run]);
    for (const auto& [point, measurement] : points_of(rows.runs[run]))
      if (point != Point{})
        out.points.emplace_back(joined(point_lines(point), ", "), file_digits(measurement->score()));
    counts.averaged += rows.standing[run] == Standing::averaged;
    counts.diverged += rows.standing[run] == Standing::diverged;
    counts.not_chosen += rows.standing[run] != Standing::averaged && rows.standing[run] != Standing::diverged;
    placed.insert(rows.runs[run].folder);
    data.runs.push_back(std::move(out));
  }
  std::map<std::string, std::string> whole;  // run id to folder
  for (const auto& run : rows.runs) whole[run.result.run_id] = run.folder;
  std::map<std::string, const LeftOut*> left_out;
  for (const auto& one : rows.left_out) left_out[one.folder] = &one;
  size_t others = 0;
  for (const auto& run : outline.source.runs) {
    const ReadRun& read = *run->read;
    if (placed.contains(read.report.folder)) continue;
    PageRun out = begin_run(*run, page_folder, rows.defaults);
    out.key = formatted("x{}", others++);
    out.standing = "left out";
    const auto why = left_out.find(read.report.folder);
    if (why != left_out.end()) {
      out.standing_text = "left out: " + why->second->reason;
      if (why->second->why == LeftOut::Why::copy) out.state = "copy";
      if (why->second->why == LeftOut::Why::untested) out.standing = "untested";
      ++(why->second->why == LeftOut::Why::copy       ? counts.copies
         : why->second->why == LeftOut::Why::untested ? counts.untested
                                                      : counts.damaged);
    } else if (read.report.state == RunState::unfinished || !read.begun) {
      const auto copy = whole.find(read.report.run_id);
      out.standing_text = "left out: not finished";
      if (copy != whole.end()) out.standing_text += "; the run is intact in " + shown(copy->second);
      ++(copy != whole.end() ? counts.copies : counts.unfinished);
    } else if (read.other_schema || read.report.state == RunState::older || read.report.state == RunState::newer) {
      out.standing_text = "left out: written by another version";
      ++counts.other_version;
    } else {
      out.standing_text = "left out: damaged";
      ++counts.damaged;
    }
    data.runs.push_back(std::move(out));
  }
  for (const auto& archive : outline.source.archives) {
    PageRun out;
    out.key = formatted("x{}", others++);
    out.folder = shown(archive.path);
    out.state = "damaged";
    out.state_text = "a damaged archive: none of its runs can be read";
    out.problems = {shown(archive.problem)};
    out.standing = "left out";
    out.standing_text = "left out: in a damaged archive";
    out.test_text = out.valid_text = out.ceiling_text = out.wall_text = out.speed_text = out.updates_text = "–";
    ++counts.damaged;
    data.runs.push_back(std::move(out));
  }
  counts.found = data.runs.size();
}

std::vector<size_t> add_board(const Outline& outline, PageData& data) {
  std::vector<size_t> places;
  std::set<std::string> names;
  std::map<std::string, size_t> unfinished;  // by folder as shown
  for (size_t i = 0; i < outline.source.runs.size(); ++i) {
    const ReadRun& read = *outline.source.runs[i]->read;
    if (!read.run && read.report.state == RunState::unfinished) unfinished[shown(read.report.folder)] = i;
  }
  for (const auto& page_run : data.runs) {
    const auto at = unfinished.find(page_run.folder);
    if (at == unfinished.end()) continue;
    const SourceRun& run = *outline.source.runs[at->second];
    const bool held = outline.source.held[at->second];
    BoardLine line;
    line.key = page_run.key;
    line.name = joined(std::vector<std::string>{page_run.model.empty() ? page_run.folder : page_run.model,
                                                page_run.task ? formatted("task {}", *page_run.task) : "task –",
                                                page_run.seeds_text.empty() ? "seed –" : page_run.seeds_text},
                       ", ");
    const std::string stem = line.name;
    for (int i = 2; !names.insert(line.name).second; ++i) line.name = formatted("{} ({})", stem, i);
    line.model = page_run.model;
    line.updates = run.read->report.updates;
    line.update = std::min(line.updates, std::max(run.read->report.update, run.curves.last));
    line.state = held ? "running" : line.update > 0 ? "stopped" : "waiting";
    line.rate_text = line.left_text = "–";
    if (held && run.seconds_per_step) {
      line.rate_text = *run.seconds_per_step < 1 ? formatted("{:.1f} updates/s", 1 / *run.seconds_per_step)
                                                 : formatted("{:.1f} s per update", *run.seconds_per_step);
      line.left_text = duration_text(*run.seconds_per_step * static_cast<double>(line.updates - line.update));
    }
    data.board.push_back(std::move(line));
    places.push_back(at->second);
  }
  return places;
}

}  // namespace sb
