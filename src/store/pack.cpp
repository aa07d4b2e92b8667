#include "store/pack.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/text.h"
#include "store/evaluation_file.h"
#include "store/gzip.h"
#include "store/json_fields.h"
#include "store/run_check.h"
#include "store/seal.h"
#include "store/thinned_metrics.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
constexpr const char* record_name = "suite.json";
constexpr size_t kMaxRecordBytes = size_t{1} << 20;

class Packer {
 public:
  Packer(const std::string& root, const std::string& except) : root_(root), found_(find_runs(root, tree_)) {
    std::error_code failed;
    if (except.empty() || !fs::exists(except, failed) || fs::equivalent(root, except, failed)) return;
    const auto inside = [&](const std::string& path) {
      for (fs::path at = path; !at.empty() && at != at.parent_path(); at = at.parent_path())
        if (std::error_code unknown; fs::equivalent(at, except, unknown)) return true;
      return false;
    };
    std::erase_if(found_.runs, inside);
    std::erase_if(found_.folders, inside);
  }

  Packed pack() {
    out_.notes = found_.notes;
    for (const auto& archive : found_.damaged) refuse(archive.problem);
    for (const auto& folder : found_.runs) take_run(folder);
    for (const auto& folder : found_.folders) take_record(folder);
    if (out_.runs == 0)
      throw bad_input("pack", "expected intact runs, got none, " + printable(root_, 400) +
                                  (out_.notes.empty() ? "" : "; " + out_.notes.front()));
    out_.files.push_back({packing_list_name, packing_list(out_.files)});
    return std::move(out_);
  }

 private:
  void refuse(const std::string& line) {
    out_.notes.push_back("left out, damaged: " + line);
    out_.damaged = true;
  }

  // Name of a file in the archive. If the root is itself a run, its files get a folder of their own.
  std::string name_of(const std::string& folder, const std::string& run_id, const std::string& file) const {
    const std::string place = fs::path(folder).lexically_relative(root_).string();
    const std::string inside = place == "." ? run_id : place;
    return inside.empty() ? file : inside + "/" + file;
  }

  void add(const std::string& folder, const std::string& run_id, const std::string& file, std::string content) {
    std::string name = name_of(folder, run_id, file);
    if (!is_tar_name(name))
      throw bad_input("pack",
                      "expected names of printable ASCII that fit an archive, got '" + printable(name, 300) + "'");
    out_.files.push_back({std::move(name), std::move(content)});
  }

  void take_run(const std::string& folder) {
    const RunReport report = inspect_run(folder, CheckScope::result, tree_);
    if (report.state == RunState::unfinished) {
      ++out_.unfinished;
    } else if (report.state == RunState::damaged) {
      for (const auto& problem : report.problems) refuse(problem);
    } else if (!report.result_stands) {
      out_.notes.push_back(std::string("left out, ") + to_string(report.state) + ": " + printable(folder, 400));
    } else {
      take_whole(folder, report);
    }
  }

  void take_whole(const std::string& folder, const RunReport& report) {
    const auto path = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
    const auto copy = [&](const std::string& name, size_t limit) {
      add(folder, report.run_id, name, tree_.read(path(name), limit));
    };
    copy("config.json", kMaxConfigFileBytes);
    copy("config.toml", kMaxConfigFileBytes);
    if (report.result->samples.empty()) {
      copy("result.json", kMaxResultBytes);
    } else {
      add(folder, report.run_id, "result.json", sealed_json(packed_result_text(*report.result)));
    }
    if (!read_stored_config(folder, tree_).automaton_digest.empty()) copy("automaton.json", kMaxAutomatonBytes);
    if (report.state == RunState::packed) {
      copy(thinned_metrics_name, kMaxMetricsBytes);
    } else {
      const std::string text = tree_.read(path("metrics.jsonl"), kMaxMetricsBytes);
      const auto rows = parse_metrics(text, path("metrics.jsonl"));
      add(folder, report.run_id, thinned_metrics_name,
          thinned_text(thin_metrics(rows, report.run_id, sha256_hex(text))));
    }
    std::vector<std::string> problems;
    for (const auto& saved :
         load_evaluations(folder, evaluated_run(report.run_id, report.result->config), &problems, tree_))
      copy(evaluation_name(saved), kMaxResultBytes);
    for (const auto& problem : problems) refuse(problem);
    ++out_.runs;
  }

  void take_record(const std::string& folder) {
    const std::string path = (fs::path(folder) / record_name).string();
    if (!tree_.exists(path)) return;
    try {
      std::string text = tree_.read(path, kMaxRecordBytes);
      if (!is_sealed(text)) throw bad_input("suite", path + ": SHA-256 mismatch");
      add(folder, "", record_name, std::move(text));
    } catch (const Error& error) {
      refuse(error.what());
    }
  }

  std::string root_;
  RunTree tree_;
  FoundFolders found_;
  Packed out_;
};

}  // namespace

Packed pack_runs(const std::string& root, const std::string& except) {
  return Packer(root, except).pack();
}

std::string write_archive(const std::string& path, const std::vector<TarFile>& files, FileSystem& system) {
  if (files.size() > most_archived)
    throw bad_input("pack", "expected at most " + std::to_string(most_archived) + " files, got " +
                                std::to_string(files.size()) + ", " + printable(path, 400));
  std::string bytes = tar_bytes(files);
  if (bytes.size() > kMaxArchiveBytes)
    throw bad_input("pack", "expected at most " + std::to_string(kMaxArchiveBytes) + " bytes, got " +
                                std::to_string(bytes.size()) + ", " + printable(path, 400));
  if (path.ends_with(".gz") || path.ends_with(".tgz")) bytes = gzip(bytes, path);
  write_file_atomically(path, bytes, system);
  return sha256_hex(bytes);
}

}  // namespace sb
