#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>

#include "base/file.h"
#include "base/number.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/settings.h"
#include "cli/shipped.h"
#include "cli/stop.h"
#include "cli/training.h"
#include "cli/workers.h"
#include "report/summary.h"
#include "runs/run_store.h"
#include "runs/suite.h"

namespace sb::cli {
namespace {

struct Options {
  std::string file, root, only;
  std::vector<std::string> overrides;
  int jobs = 0, threads = 0;
  bool list = false;
};

std::string name_of(const ResolvedConfig& run) {
  const RunConfig& c = run.values;
  return c.model.name + ", task " + std::to_string(c.task.task.number) + ", seed " + std::to_string(c.run.seed);
}

std::string finished_text(const std::string& folder) {
  const RunResult r = read_result(folder);
  if (r.status == "diverged") return "diverged";
  return "test " + fixed(r.test, 3) + " of " + fixed(r.ceiling, 3);
}

// One line a running job on a terminal, redrawn in place; elsewhere a plain line when a run begins and ends.
class Board {
 public:
  Board(size_t total, size_t done) : total_(total), done_(done), terminal_(isatty(STDERR_FILENO) == 1) {}

  void started(size_t work, const std::string& name) { lines_[work] = {name, "starting"}; }

  void said(size_t work, const std::string& text) {
    const Json j = Json::parse(text, nullptr, false);
    if (!j.is_object() || !j.contains("phase")) return;
    const double share = j.at("update").get<double>() / std::max(1.0, j.at("updates").get<double>());
    std::string state = j.at("phase").get<std::string>() + " " + fixed(100 * share, 0) + " %, loss " +
                        fixed(j.at("loss").get<double>(), 3);
    if (const double valid = j.at("valid").get<double>(); valid >= 0) state += ", valid " + fixed(valid, 3);
    lines_[work].second = state;
  }

  void finished(size_t work, const std::string& what, double seconds) {
    ++done_;
    erase();
    complain("[" + std::to_string(done_) + "/" + std::to_string(total_) + "] " + lines_[work].first + ": " + what +
             ", " + duration_text(seconds));
    lines_.erase(work);
    draw();
  }

  void redraw() {
    if (!terminal_) return;
    erase();
    draw();
  }

 private:
  void erase() {
    for (; drawn_ > 0; --drawn_) raw("\x1b[1A\x1b[2K");
  }
  void draw() {
    if (!terminal_) return;
    for (const auto& [work, line] : lines_) {
      raw("  " + line.first + ": " + line.second + "\n");
      ++drawn_;
    }
  }
  static void raw(const std::string& text) {
    if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
  }

  size_t total_, done_;
  bool terminal_;
  int drawn_ = 0;
  std::map<size_t, std::pair<std::string, std::string>> lines_;
};

Exit run_missing(const Options& options, const Suite& suite) {
  const int cores =
      options.threads > 0 ? options.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int jobs = options.jobs > 0 ? options.jobs : cores;
  std::vector<Work> works;
  std::vector<std::string> folders;
  for (const auto& run : suite.runs) {
    const std::string folder = options.root + "/" + run.run_id;
    if (has_result(folder)) continue;
    Work work;
    work.name = name_of(run);
    work.arguments = {"suite", options.file, "--only",    run.run_id,
                      "--out", options.root, "--threads", std::to_string(std::max(1, cores / jobs))};
    for (const auto& s : options.overrides) work.arguments.insert(work.arguments.end(), {"--set", s});
    works.push_back(std::move(work));
    folders.push_back(folder);
  }
  Board board(suite.runs.size(), suite.runs.size() - works.size());
  Exit worst = Exit::done;
  Workers workers;
  workers.jobs = jobs;
  workers.stop = [] { return stop_requested(); };
  workers.started = [&](size_t w) { board.started(w, works[w].name); };
  workers.said = [&](size_t w, const std::string& line) { board.said(w, line); };
  workers.tick = [&] { board.redraw(); };
  workers.finished = [&](size_t w, const WorkDone& done) {
    if (done.exit_code == 0) {
      board.finished(w, finished_text(folders[w]), done.seconds);
    } else {
      board.finished(w, "exit code " + std::to_string(done.exit_code), done.seconds);
      complain(done.errors);
      if (worst == Exit::done)
        worst = done.exit_code == 74 ? Exit::cannot_write : done.exit_code == 75 ? Exit::stopped : Exit::check_failed;
    }
  };
  work_through(works, workers);
  return stop_requested() ? Exit::stopped : worst;
}

void write_tables(const Options& options, const Suite& suite) {
  std::vector<RunResult> results;
  std::vector<std::string> missing;
  for (const auto& run : suite.runs) {
    try {
      results.push_back(read_result(options.root + "/" + run.run_id));
    } catch (const Error&) {
      missing.push_back("not finished: " + name_of(run) + ", " + run.run_id);
    }
  }
  if (results.empty()) return;
  Summary summary = summarise(results);
  summary.notes.insert(summary.notes.end(), missing.begin(), missing.end());
  const std::string text = render(summary, TableFormat::text);
  write_file_atomically(options.root + "/table.txt", text);
  write_file_atomically(options.root + "/table.md", render(summary, TableFormat::markdown));
  write_file_atomically(options.root + "/table.csv", render(summary, TableFormat::csv));
  write_file_atomically(options.root + "/table.json", render(summary, TableFormat::json));
  print(text);
  print("\nwritten to " + options.root + "/table.{txt,md,csv,json}\n");
}

Exit list_runs(const Options& options, const Suite& suite) {
  for (const auto& run : suite.runs) {
    const bool done = has_result(options.root + "/" + run.run_id);
    print(run.run_id + "  " + (done ? "done     " : "missing  ") + name_of(run) + "\n");
  }
  return Exit::done;
}

Exit run(const Options& options) {
  const Suite suite = read_suite(options.file, options.overrides, model_rules());
  if (options.list) return list_runs(options, suite);
  if (!options.only.empty()) {
    const auto it = std::find_if(suite.runs.begin(), suite.runs.end(),
                                 [&](const ResolvedConfig& r) { return r.run_id == options.only; });
    if (it == suite.runs.end()) {
      throw bad_input("suite --only", "expected the id of a run of the suite, got " + options.only);
    }
    use_threads(options.threads);
    return work_on(*it, options.root, true);
  }
  const Exit code = run_missing(options, suite);
  write_tables(options, suite);
  return code;
}

}  // namespace

void add_suite(Program& program) {
  auto options = std::make_shared<Options>();
  Arguments& arguments = program.command("suite", "Run what is missing of a grid of runs, then print its table",
                                         {"selectivbench suite configs/quick.toml --out runs/quick",
                                          "selectivbench suite configs/paper/task1_model_size.toml --list"},
                                         [options] {
                                           options->file = shipped_config("suite FILE", options->file);
                                           return run(*options);
                                         });
  arguments.positional("FILE", options->file, true, "The suite (TOML), or the name of a shipped one");
  add_set(arguments, options->overrides);
  add_root(arguments, options->root, "runs");
  arguments.integer("--jobs", options->jobs, 0, 1024, "Runs at a time, each in its own process; 0: one a core");
  arguments.flag("--list", options->list, "Only list the runs and which of them are done");
  arguments.text("--only", options->only, "RUN", "Work on this run alone, progress as JSON lines");
  add_threads(arguments, options->threads);
}

}  // namespace sb::cli
