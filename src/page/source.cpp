#include "page/source.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "store/run_lock.h"
#include "store/thinned_metrics.h"

namespace sb {
namespace {

namespace fs = std::filesystem;

std::optional<double> value_of(const MetricRow& row, const char* name) {
  for (const auto& [key, value] : row.values)
    if (key == name && std::isfinite(value)) return value;
  return std::nullopt;
}

// Names, sizes and times of a folder's files (except the lock, which changes often), or of the archive it is in.
std::string stamp_of(const std::string& folder, bool in_archive) {
  std::vector<std::string> parts;
  const auto add = [&](const fs::path& path) {
    std::error_code failed;
    if (path.filename().string().starts_with("lock")) return;
    const auto size = fs::file_size(path, failed);
    const auto time = fs::last_write_time(path, failed).time_since_epoch().count();
    parts.push_back(formatted("{} {} {}", path.filename().string(), size, time));
  };
  if (in_archive) {
    for (fs::path path = folder; path.has_relative_path(); path = path.parent_path()) {
      if (is_file(path)) add(path);
    }
  } else {
    std::error_code failed;
    for (fs::directory_iterator it(folder, failed), end; !failed && it != end; it.increment(failed)) add(it->path());
  }
  std::sort(parts.begin(), parts.end());
  return joined(parts, "\n");
}

// The value of "numbers_sha256" in the result of the whole run, also if it is packed.
std::string digest_of(const std::string& folder, const RunTree& tree) {
  const std::string text = load_result_text(folder, tree);
  for (const std::string start : {"\"whole_sha256\": \"", "\"numbers_sha256\": \""})
    if (const size_t at = text.rfind(start); at != std::string::npos)
      return printable(text.substr(at + start.size(), 64), 64);
  return "";
}

// Metrics of an unfinished run. The file is replaced as a whole, so it has no partial lines.
std::vector<MetricRow> rows_so_far(const std::string& path, const RunTree& tree) {
  if (!tree.exists(path)) return {};
  return parse_metrics(tree.read(path, kMaxMetricsBytes), path);
}

std::optional<double> seconds_per_step(const std::vector<MetricRow>& timing) {
  constexpr size_t window = 50;
  std::vector<std::pair<int64_t, double>> marks;
  for (const auto& row : timing)
    if (row.phase == "train")
      if (const auto wall = value_of(row, "wall")) marks.emplace_back(row.update, *wall);
  if (marks.size() < 2) return std::nullopt;
  const auto& first = marks[marks.size() > window ? marks.size() - window : 0];
  const auto& last = marks.back();
  if (last.first <= first.first || last.second <= first.second) return std::nullopt;
  return (last.second - first.second) / static_cast<double>(last.first - first.first);
}

std::shared_ptr<const SourceRun> read_source(const std::string& folder, const RunTree& tree, bool in_archive) {
  auto out = std::make_shared<SourceRun>();
  out->in_archive = in_archive;
  out->read = std::make_shared<const ReadRun>(read_run(folder, tree));
  const RunReport& report = out->read->report;
  try {
    if (out->read->run) {
      out->digest = digest_of(folder, tree);
      out->curves =
          thin_curves(load_metrics(folder, out->read->run->result, tree).rows, out->read->run->result.updates);
    } else if (report.state == RunState::unfinished) {
      out->curves = thin_curves(rows_so_far(folder + "/metrics.jsonl", tree), report.updates);
      out->seconds_per_step = seconds_per_step(rows_so_far(folder + "/timing.jsonl", tree));
    }
  } catch (const Error& error) {
    out->curves.fault = one_line(error.what());
  }
  return out;
}

}  // namespace

Curves thin_curves(const std::vector<MetricRow>& rows, int64_t updates) {
  Curves out;
  const int64_t block = std::max<int64_t>(1, (updates + most_blocks - 1) / most_blocks);
  double sum = 0;
  int64_t count = 0, at = -1;
  const auto close = [&] {
    if (count > 0)
      out.loss.push_back({std::min((at + 1) * block, std::max(updates, out.last)), sum / static_cast<double>(count)});
    sum = 0;
    count = 0;
  };
  for (const auto& row : rows) {
    if (row.phase == "train") {
      if (row.update / block != at) close();
      at = row.update / block;
      out.last = std::max(out.last, row.update + 1);
      if (const auto loss = value_of(row, "loss")) {
        sum += *loss;
        ++count;
      }
    } else if (row.phase == "valid") {
      out.last = std::max(out.last, row.update);
      const auto accuracy = value_of(row, "accuracy"), error = value_of(row, "mse");
      if (accuracy || error) out.valid.push_back({row.update, accuracy ? *accuracy : *error});
      out.squared |= !accuracy && error;
    }
  }
  close();
  if (out.valid.size() > most_valid_points) {
    const size_t step = (out.valid.size() + most_valid_points - 1) / most_valid_points;
    std::vector<CurvePoint> kept;
    for (size_t i = 0; i < out.valid.size(); ++i)
      if ((out.valid.size() - 1 - i) % step == 0) kept.push_back(out.valid[i]);  // the last one always
    out.valid = std::move(kept);
  }
  return out;
}

PageSource::PageSource(std::vector<std::string> roots, const std::string& where, SwitchDefaults defaults)
    : roots_(std::move(roots)), defaults_(std::move(defaults)) {
  check_roots(roots_, where);
}

SourceContent PageSource::read() {
  std::map<std::string, Kept> now;
  std::mutex lock;
  const auto reader = [&](const std::string& folder, const RunTree& tree) {
    const bool in_archive = !is_folder(folder);
    std::string stamp = stamp_of(folder, in_archive);
    const auto before = kept_.find(folder);
    auto run = before != kept_.end() && before->second.stamp == stamp ? before->second.run
                                                                      : read_source(folder, tree, in_archive);
    const std::lock_guard held(lock);
    now[folder] = {std::move(stamp), run};
    return run->read;
  };
  const GatheredRuns gathered = gather_runs(roots_, reader, DamagedRoot::listed);
  kept_ = std::move(now);
  SourceContent out;
  for (const auto& read : gathered.runs) {
    const std::string& folder = read->report.folder;
    const auto& run = kept_.at(folder).run;
    out.by_folder[folder] = out.runs.size();
    out.runs.push_back(run);
    const bool unfinished = !run->in_archive && !read->run && read->report.state == RunState::unfinished;
    out.held.push_back(unfinished && lock_is_held(folder + "/lock").value_or(true));
  }
  for (const auto& archive : gathered.archives)
    if (std::none_of(out.archives.begin(), out.archives.end(),
                     [&](const DamagedArchive& other) { return other.path == archive.path; }))
      out.archives.push_back(archive);
  out.rows = rows_of(gathered, defaults_);
  return out;
}

void PageSource::expect_some(const SourceContent& content, const std::string& where) const {
  const auto damaged = [&](const std::string& root) {
    return std::any_of(content.archives.begin(), content.archives.end(),
                       [&](const DamagedArchive& archive) { return archive.path == root; });
  };
  if (!roots_.empty() && std::all_of(roots_.begin(), roots_.end(), damaged))
    throw bad_input(where, "expected an archive of `selectivbench pack`, got one that cannot be read: " +
                               one_line(content.archives.front().problem));
}

}  // namespace sb
