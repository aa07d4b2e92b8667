#include "jobs/suite_session.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "base/format.h"
#include "base/number.h"
#include "base/text.h"
#include "jobs/board.h"
#include "jobs/devices.h"
#include "jobs/run_names.h"
#include "jobs/suite_status.h"
#include "jobs/time_budget.h"
#include "jobs/workers.h"
#include "store/open_run.h"
#include "store/result.h"
#include "store/run_check.h"
#include "store/run_lock.h"

namespace sb {
namespace {

std::string finished_text(const std::string& folder) {
  const Result r = open_result(folder);
  if (r.status == "diverged") return "diverged";
  if (!r.test) return "no test accuracy, the output was not finite";
  return (r.test->mse ? "test squared error " : "test ") + fixed(r.test->score(), 3) +
         (r.test->ceiling ? " of " + fixed(r.test->ceiling->score(), 3) : "");
}

std::string count_text(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what;
}

// Names of the first `--gpus` visible GPUs. Throws bad_input if fewer are visible, or if one of the runs is on the CPU.
std::vector<std::string> hand_out_gpus(const SuiteOptions& options, const std::vector<const ResolvedConfig*>& runs) {
  for (const auto* run : runs)
    if (run->values.train.device != DeviceKind::cuda)
      throw bad_input(options.command + " --gpus", "expected only GPU runs, got a run with train.device cpu");
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  auto gpus = visible_gpus(visible, options.gpus);
  if (static_cast<int>(gpus.size()) < options.gpus)
    throw bad_input(options.command + " --gpus", "expected at most " + std::to_string(gpus.size()) +
                                                     ", the number of GPUs in CUDA_VISIBLE_DEVICES=" +
                                                     printable(visible, 200) + ", got " + std::to_string(options.gpus));
  return gpus;
}

std::vector<const ResolvedConfig*> missing_of(const Suite& suite, const Overview& overview) {
  std::vector<const ResolvedConfig*> out;
  for (size_t i = 0; i < suite.runs.size(); ++i)
    if (!overview.runs[i].done) out.push_back(&suite.runs[i]);
  return out;
}

// Runs the missing runs of a suite in separate processes.
class Session {
 public:
  Session(const SuiteOptions& options, const Suite& suite, const KnownRuns& known, Overview overview, const Host& host)
      : suite_(suite),
        host_(host),
        overview_(std::move(overview)),
        board_(suite.runs.size(), overview_.done(), longest_name(overview_), host.console()) {
    if (!options.time_limit.empty())
      budget_ = TimeBudget(parse_duration(options.time_limit, options.command + " --time-limit"), board_.clock());
    if (options.gpus > 0) gpus_ = hand_out_gpus(options, missing_of(suite, overview_));
    const Division division = divide(options, suite, overview_);
    jobs_ = division.jobs;
    share_machine(overview_, options, division);
    const std::string threads = std::to_string(division.threads);
    const std::string shared_by = std::to_string(std::lround(overview_.sharing));
    for (const size_t i : in_order(suite)) {
      const ResolvedConfig& run = suite.runs[i];
      if (overview_.runs[i].done) {
        if (const std::string line = kept_label(run, overview_.runs[i].folder, known.tree); !line.empty())
          board_.say(line);
        continue;
      }
      Work work;
      work.name = overview_.runs[i].name;
      work.arguments = {"suite",       "/dev/stdin", "--only", run.run_id,   "--out",
                        options.root,  "--threads",  threads,  "--lifeline", std::to_string(kLifeline),
                        "--shared-by", shared_by};
      // Passes the resolved config, so that the process reads no files that may have changed since.
      work.input = config_toml(run, false, "/dev/fd/" + std::to_string(kSecondInput));
      if (const auto& automaton = run.values.grammar.file) work.second_input = automaton->text;
      works_.push_back(std::move(work));
      index_.push_back(i);
    }
    states_.resize(works_.size());
  }

  Exit work() {
    const auto runs_end_first = host_.graceful_stop();
    std::signal(SIGPIPE, SIG_IGN);
    Workers workers;
    workers.jobs = jobs_;
    workers.gpus = gpus_;
    workers.stop = [&] { return stopping(); };
    workers.stopping = [&] {
      board_.say(host_.stop_requested()
                     ? "[suite] stopping: runs finish their update and save; another signal ends them at once"
                     : "[suite] time limit reached: runs finish their update and save");
    };
    workers.pick = [&](const std::deque<size_t>& waiting) { return next(waiting); };
    workers.started = [&](size_t w) { board_.started(w, works_[w].name); };
    workers.said = [&](size_t w, const std::string& line) { board_.said(w, line); };
    workers.tick = [&] { tick(); };
    workers.finished = [&](size_t w, const WorkDone& done) { return finished(w, done); };
    work_through(works_, workers);
    return close();
  }

 private:
  enum class State { waiting, done, diverged, stopped, held, failed };

  bool stopping() const { return host_.stop_requested() || budget_.over(); }

  static size_t longest_name(const Overview& overview) {
    size_t width = 0;
    for (const auto& run : overview.runs) width = std::max(width, display_width(run.name));
    return width;
  }

  // Recomputes the time left every few seconds, from the progress of the running jobs.
  void tick() {
    constexpr double every = 2;
    const double now = board_.clock()();
    if (!reckoned_ || now - *reckoned_ >= every) {
      reckoned_ = now;
      for (size_t w = 0; w < works_.size(); ++w)
        if (const RunProgress* p = board_.progress(w); p != nullptr && p->updates > 0)
          overview_.runs[index_[w]].left = 1 - static_cast<double>(p->update) / static_cast<double>(p->updates);
      board_.time_left(overview_.seconds_left(suite_, jobs_));
    }
    board_.tick();
  }

  // The order of work, with started runs first.
  std::vector<size_t> in_order(const Suite& suite) const {
    std::vector<size_t> order = order_of_work(suite);
    std::stable_partition(order.begin(), order.end(),
                          [&](size_t i) { return overview_.runs[i].state.starts_with("begun"); });
    return order;
  }

  // Picks the next run; runs that another process seems to work on come last.
  std::optional<size_t> next(const std::deque<size_t>& waiting) {
    std::vector<size_t> places;
    for (size_t place = 0; place < waiting.size(); ++place) {
      const std::string& folder = overview_.runs[index_[waiting[place]]].folder;
      if (lock_is_held(folder + "/lock").value_or(true)) continue;
      places.push_back(place);
      if (!budget_.limited()) return place;
    }
    if (places.empty())
      for (size_t place = 0; place < waiting.size(); ++place) places.push_back(place);
    if (!budget_.limited()) return 0;
    if (estimates_.empty())
      for (const size_t i : index_) estimates_.push_back(overview_.estimate(suite_, i));
    std::vector<std::optional<double>> estimates;
    for (const size_t place : places) estimates.push_back(estimates_[waiting[place]]);
    const auto chosen = budget_.next(estimates);
    return chosen ? std::optional(places[*chosen]) : std::nullopt;
  }

  // "12 of 200"; empty before the first update.
  std::string updates_text(size_t w) const {
    const RunProgress* p = board_.progress(w);
    return p == nullptr || p->update == 0 ? "" : std::to_string(p->update) + " of " + std::to_string(p->updates);
  }

  // Returns true if the run should be tried again after all others.
  bool finished(size_t w, const WorkDone& done) {
    Overview::Run& run = overview_.runs[index_[w]];
    const RunProgress* p = board_.progress(w);
    const bool held = p != nullptr && p->phase == "waiting";
    const bool tried = states_[w] == State::held;
    std::string outcome;
    run.done = has_result(run.folder);
    if (run.done) {
      states_[w] = State::done;
      outcome = outcome_of(run.folder, w);
      if (auto taken = time_taken(run.folder)) {
        taken->seconds = std::max(taken->seconds, done.seconds);  // with the start of its process
        overview_.costs.learn(suite_.runs[index_[w]].values, run.frames, run.size.flops, *taken);
      }
      estimates_.clear();  // this run improves the estimates of similar ones
      reckoned_.reset();
    } else if (done.exit_code == static_cast<int>(Exit::stopped)) {
      states_[w] = held ? State::held : State::stopped;
      const std::string at = updates_text(w);
      outcome = held ? "another process works on it" : "stopped" + (at.empty() ? "" : " after update " + at);
      if (!held && !at.empty()) stopped_at_.push_back(at);
    } else if (done.exit_code == static_cast<int>(Exit::taken_over)) {
      states_[w] = State::held;
      outcome = "another process took it over";
    } else if (host_.stop_requested() && done.exit_code > 128) {
      states_[w] = State::stopped;
      outcome = "ended by a signal";
    } else {
      states_[w] = State::failed;
      outcome = done.exit_code > 128 ? "ended by signal " + std::to_string(done.exit_code - 128)
                                     : "exit code " + std::to_string(done.exit_code);
    }
    if (states_[w] == State::failed) remember_failure(run.folder, done.errors, outcome);
    if (states_[w] == State::stopped && stopping())
      board_.drop(w);  // counted in the last line
    else
      board_.over(w, outcome + ", " + duration_text(done.seconds), run.done);
    say_lines(done.errors, states_[w] == State::failed ? "" : "warning: ");
    return states_[w] == State::held && !tried && !host_.stop_requested();
  }

  // Stores the last error line and the outcome in the run folder, for `--status`.
  static void remember_failure(const std::string& folder, const std::string& errors, const std::string& outcome) {
    const std::string last = last_line(errors);
    try {
      keep_failure(folder, {(last.empty() ? "" : last + "; ") + outcome, this_slurm_task()});
    } catch (const std::exception&) {  // the failure is printed here anyway
    }
  }

  std::string outcome_of(const std::string& folder, size_t w) {
    try {
      const std::string text = finished_text(folder);
      if (text == "diverged") states_[w] = State::diverged;
      return text;
    } catch (const Error& error) {
      states_[w] = State::failed;
      return error.what();
    }
  }

  // Prints the lines that begin with `beginning`.
  void say_lines(const std::string& text, const std::string& beginning) {
    for (const auto& line : split(text, '\n'))
      if (!line.empty() && line.starts_with(beginning)) board_.say("  " + line);
  }

  // " (update 12 of 200, 22 of 200)"; empty if there are many or none.
  std::string stopped_updates() const {
    constexpr size_t most = 4;
    const bool few = !stopped_at_.empty() && stopped_at_.size() <= most;
    return few ? " (update " + joined(stopped_at_, ", ") + ")" : "";
  }

  Exit close() {
    std::map<State, size_t> counts;
    for (size_t w = 0; w < works_.size(); ++w) {
      Overview::Run& run = overview_.runs[index_[w]];
      // Another process may have finished it meanwhile.
      if (!run.done && has_result(run.folder)) {
        run.done = true;
        states_[w] = State::done;
      }
      ++counts[states_[w]];
    }
    const size_t total = suite_.runs.size(), done = overview_.done();
    std::string line = "[suite] " + count_text(done, "of " + counted(total, "run") + " done");
    const auto add = [&](State state, const std::string& what) {
      if (counts[state] > 0) line += ", " + count_text(counts[state], what);
    };
    add(State::diverged, "of them diverged in this call");
    add(State::failed, "failed");
    add(State::held, "held by another process");
    add(State::stopped, "stopped" + stopped_updates());
    add(State::waiting, budget_.limited() ? "not started, since time is too short" : "not begun");
    const bool failed = counts[State::failed] > 0;
    if (done < total) line += failed && !host_.stop_requested() ? "" : "; the same command resumes";
    board_.say(line);
    if (failed && !host_.stop_requested()) return Exit::check_failed;
    return done == total ? Exit::done : Exit::stopped;
  }

  const Suite& suite_;
  const Host& host_;
  Overview overview_;
  Board board_;
  TimeBudget budget_;
  std::vector<std::string> gpus_;
  int jobs_ = 1;
  std::vector<Work> works_;
  std::vector<size_t> index_;  // of a work's run in the suite
  std::vector<State> states_;
  std::vector<std::string> stopped_at_;           // updates of runs that were stopped
  std::optional<double> reckoned_;                // time of the last estimate, by the board's clock
  std::vector<std::optional<double>> estimates_;  // current estimate of each work, in seconds; empty: outdated
};

}  // namespace

Division divide(const SuiteOptions& options, const Suite& suite, const Overview& overview) {
  const int cores =
      options.threads > 0 ? options.threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const auto missing = missing_of(suite, overview);
  const int jobs = options.jobs > 0 ? options.jobs : options.gpus > 0 ? options.gpus : usual_jobs(missing, cores);
  Division out;
  out.jobs = std::min(jobs, static_cast<int>(std::max<size_t>(1, missing.size())));  // no more than there are runs
  out.threads = std::max(1, cores / out.jobs);
  return out;
}

void share_machine(Overview& overview, const SuiteOptions& options, const Division& division) {
  const int gpus = std::max(1, options.gpus);
  overview.sharing = (division.jobs + gpus - 1) / gpus;  // the largest number of runs on one GPU
  overview.threads = division.threads;
}

Exit work_on_suite(const SuiteOptions& options, const Suite& suite, const KnownRuns& known, Overview overview,
                   const Host& host) {
  return Session(options, suite, known, std::move(overview), host).work();
}

}  // namespace sb
