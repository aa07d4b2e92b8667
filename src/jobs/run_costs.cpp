#include "jobs/run_costs.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include "base/number.h"
#include "config/schema.h"

namespace sb {
namespace {

constexpr std::array kLearning = {
    "grammar.seed",       "train.seed",    "train.order_seed", "train.updates",        "train.lr",
    "train.warmup",       "train.clip",    "train.beta1",      "train.beta2",          "train.eps",
    "train.weight_decay", "model.dropout", "run.seed",         "run.checkpoint_every", "run.label"};

std::string likeness(const ResolvedConfig& run) {
  std::string out;
  for (const auto& parameter : config_keys()) {
    if (std::find(kLearning.begin(), kLearning.end(), parameter.name()) != kLearning.end()) continue;
    out += parameter.name() + "=" + toml_text(parameter.get(run.values)) + "\n";
  }
  for (const auto& [name, value] : run.values.task.keys) out += name + "=" + toml_text(config_value(value)) + "\n";
  for (const auto& [name, value] : run.values.model.switches) out += name + "=" + value + "\n";
  return out;
}

std::string kind(const ResolvedConfig& run) {
  const TrainSection& train = run.values.train;
  std::string out = run.values.model.name + "\n" + to_string(train.device) + "\n" + to_string(train.precision) + "\n";
  for (const auto& parameter : config_keys())
    if (parameter.section == "task") out += toml_text(parameter.get(run.values)) + "\n";
  return out;
}

double scale(const ResolvedConfig& run, double flops) {
  return static_cast<double>(run.values.train.batch) * flops;
}

// Small models need more time per FLOP than large ones. Beyond this ratio of sizes, measured rates are better.
constexpr double nearness = 4;

// Cost of all evaluations of the run in units of one update; a forward pass costs a third of an update.
double evaluations(const RunConfig& run) {
  const double periodic = run.eval.every > 0 ? static_cast<double>((run.train.updates - 1) / run.eval.every) : 0;
  const double samples = (periodic + 1) * static_cast<double>(run.eval.valid_samples) +
                         static_cast<double>(run.eval.test_samples) +
                         static_cast<double>(run.eval.points.size()) * static_cast<double>(run.eval.grid_samples);
  return samples / (3.0 * static_cast<double>(run.train.batch));
}

}  // namespace

void RunCosts::learn(const ResolvedConfig& run, double flops, const TimeTaken& taken) {
  const auto updates = static_cast<double>(run.values.train.updates);
  if (taken.diverged || !(taken.train > 0) || !std::isfinite(taken.train) || !std::isfinite(taken.total) ||
      updates <= 0)
    return;
  const int64_t sharing = std::max<int64_t>(1, taken.shared_by.value_or(1));
  Book& book = !taken.shared_by ? unknown_ : sharing == 1 ? alone_ : shared_;
  const double train = taken.train / static_cast<double>(sharing), total = taken.total / static_cast<double>(sharing);
  const double update = train / updates, evaluated = evaluations(run.values);
  const double other = std::max(0.0, total - train);
  const double evaluation = evaluated > 0 ? std::min(update, other / evaluated) : 0;
  const double rest = std::max(0.0, other - evaluation * evaluated);
  const auto add = [&](Sums& sums, double scale) {
    sums.update += update / scale;
    sums.evaluation += evaluation / scale;
    sums.rest += rest;
    ++sums.count;
  };
  add(book.like[likeness(run)], 1);
  if (scale(run, flops) > 0) add(book.scaled[kind(run)][scale(run, flops)], scale(run, flops));
}

std::optional<double> RunCosts::seconds(const ResolvedConfig& run, double flops, double left) const {
  if (const auto known = seconds_alone(run, flops, left)) return known;
  if (const auto as_it_was = seconds_as_they_were(run, flops, left)) return as_it_was;
  return seconds_far(run, flops, left);
}

std::optional<double> RunCosts::seconds_as_they_were(const ResolvedConfig& run, double flops, double left) const {
  return look_up({&unknown_}, run, flops, left, std::numeric_limits<double>::infinity());
}

std::optional<double> RunCosts::seconds_far(const ResolvedConfig& run, double flops, double left) const {
  return look_up({&alone_, &shared_}, run, flops, left, std::numeric_limits<double>::infinity());
}

std::optional<double> RunCosts::seconds_alone(const ResolvedConfig& run, double flops, double left) const {
  return look_up({&alone_, &shared_}, run, flops, left, nearness);
}

std::optional<double> RunCosts::look_up(std::initializer_list<const Book*> books, const ResolvedConfig& run,
                                        double flops, double left, double times) const {
  const double updates = left * static_cast<double>(run.values.train.updates);
  const auto estimate = [&](const Sums& sums, double scale) {
    return (scale * (sums.update * updates + sums.evaluation * evaluations(run.values)) + sums.rest) / sums.count;
  };
  for (const Book* book : books)
    if (const auto like = book->like.find(likeness(run)); like != book->like.end()) return estimate(like->second, 1);
  const double size = scale(run, flops);
  if (size <= 0) return std::nullopt;
  for (const Book* book : books) {
    const auto sizes = book->scaled.find(kind(run));
    if (sizes == book->scaled.end()) continue;
    const auto distance = [&](double other) { return std::max(other / size, size / other); };
    const auto nearest =
        std::min_element(sizes->second.begin(), sizes->second.end(),
                         [&](const auto& a, const auto& b) { return distance(a.first) < distance(b.first); });
    if (distance(nearest->first) <= times) return estimate(nearest->second, size);
  }
  return std::nullopt;
}

double seconds_in_parallel(const std::vector<double>& each, int jobs) {
  std::vector<double> busy(static_cast<size_t>(std::max(1, jobs)), 0.0);
  for (const double seconds : each) *std::min_element(busy.begin(), busy.end()) += seconds;
  return *std::max_element(busy.begin(), busy.end());
}

double seconds_since_start() {
  constexpr double longest = 60;  // clocks of another machine or namespace
  std::ifstream in("/proc/self/stat");
  std::string text;
  std::getline(in, text);
  std::istringstream fields(text.substr(std::min(text.size(), text.rfind(')') + 1)));  // the name may hold anything
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i) continue;
  const auto ticks = parse_finite(field);
  timespec now{};
  if (!fields || !ticks || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double started = *ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const double since = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) - started;
  return since > 0 && since < longest ? since : 0;
}

}  // namespace sb
