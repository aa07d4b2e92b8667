#include "tasks/task_config.h"

#include <cmath>

#include "base/error.h"
#include "base/number.h"
#include "tasks/lognormal.h"

namespace sb {
namespace {

void expect(bool holds, const std::string& where, const std::string& what, const std::string& range,
            const std::string& got) {
  if (!holds) throw bad_input(where, what + ", expected " + range + ", got " + got);
}

void check_integer(int value, int low, int high, const std::string& where, const char* what) {
  expect(value >= low && value <= high, where, what, std::to_string(low) + " to " + std::to_string(high),
         std::to_string(value));
}

void check_real(double value, double low, double high, const std::string& where, const char* what) {
  expect(value >= low && value <= high, where, what, shortest(low) + " to " + shortest(high), shortest(value));
}

void check_gap(const GapConfig& gap, const std::string& where) {
  if (gap.law == GapLaw::none) return;
  check_integer(gap.min, 0, kMaxGap, where, "min");
  if (gap.law != GapLaw::constant) {
    check_integer(gap.max, 0, kMaxGap, where, "max");
    if (gap.min > gap.max) {
      throw bad_input(where, "min (" + std::to_string(gap.min) + ") > max (" + std::to_string(gap.max) + ")");
    }
  }
  if (gap.law == GapLaw::lognormal) {
    check_real(gap.mu, -20, 20, where, "mu");
    check_real(gap.sigma, 1e-3, 20, where, "sigma");
  }
  check_real(gap.probability, 0, 1, where, "probability");
  check_integer(gap.start, 0, 1'000'000'000, where, "start");
}

}  // namespace

const char* to_string(GapLaw law) {
  static constexpr const char* names[] = {"none", "constant", "uniform", "lognormal"};
  return names[static_cast<size_t>(law)];
}
const char* to_string(GapContent content) {
  return content == GapContent::blank ? "blank" : "forbidden_symbol";
}
const char* to_string(Objective objective) {
  return objective == Objective::state ? "state" : "predict";
}

TaskConfig paper_task(int number) {
  check_integer(number, 0, 4, "task", "number");
  TaskConfig task;
  task.number = number;
  switch (number) {
    case 0:
      break;
    case 1:
      task.train = {.law = GapLaw::constant};
      task.test = task.train;
      break;
    case 3:
      task.train = {.law = GapLaw::constant, .probability = 0.1, .start = 50, .content = GapContent::forbidden_symbol};
      task.test = task.train;
      break;
    default:
      task.train = {.law = GapLaw::uniform, .min = 1, .max = 10};
      task.test = {.law = GapLaw::constant, .min = 10, .max = 10};
      task.noise = 0.2;
  }
  return task;
}

void check(const TaskConfig& task) {
  check_integer(task.number, 0, 4, "task", "number");
  check_gap(task.train, "task.gap");
  check_gap(task.test, "task.test_gap");
  check_real(task.noise, 0, 100, "task", "noise");
}

TaskConfig with_gap(TaskConfig task, Split split, int gap) {
  GapConfig& law = split == Split::train ? task.train : task.test;
  law.law = gap == 0 ? GapLaw::none : GapLaw::constant;
  law.min = law.max = gap;
  return task;
}

int longest_gap(const GapConfig& gap) {
  switch (gap.law) {
    case GapLaw::none:
      return 0;
    case GapLaw::constant:
      return gap.min;
    default:
      return gap.max;
  }
}

bool has_fixed_frames(const GapConfig& gap) {
  return gap.law == GapLaw::none || (gap.law == GapLaw::constant && gap.probability >= 1);
}

std::vector<double> gap_length_law(const GapConfig& gap) {
  std::vector<double> law(static_cast<size_t>(longest_gap(gap)) + 1, 0.0);
  const auto min = static_cast<size_t>(gap.min);
  if (gap.law == GapLaw::uniform && gap.max > gap.min) {
    const double width = gap.max - gap.min;
    for (size_t n = min; n < law.size(); ++n) law[n] = (n == min || n + 1 == law.size() ? 0.5 : 1.0) / width;
  } else if (gap.law == GapLaw::lognormal) {
    const std::vector<uint64_t> thresholds = lognormal_thresholds(gap);
    uint64_t below = 0;
    for (size_t n = min; n < law.size(); ++n) {
      const uint64_t upto = n + 1 == law.size() ? uint64_t{1} << 32 : thresholds[n - min];
      law[n] = static_cast<double>(upto - below) * 0x1p-32;
      below = upto;
    }
  } else {
    law.back() = 1;
  }
  return law;
}

int answer_count(Objective objective, int states, int classes) {
  return objective == Objective::state ? states : classes;
}

double mean_element_frames(const GapConfig& gap) {
  if (gap.law == GapLaw::none) return 1;
  const std::vector<double> law = gap_length_law(gap);
  double mean = 0;
  for (size_t n = 0; n < law.size(); ++n) mean += static_cast<double>(n) * law[n];
  return 1 + gap.probability * mean;
}

std::string canonical_text(const TaskConfig& task) {
  std::string out;
  const auto line = [&](const std::string& key, const std::string& value) {
    out += "task." + key + " = " + value + "\n";
  };
  line("objective", to_string(task.objective));
  line("noise", shortest(task.noise));
  for (const auto& [prefix, gap] : {std::pair{std::string("gap_"), &task.train}, {"test_gap_", &task.test}}) {
    line(prefix + "law", to_string(gap->law));
    if (gap->law == GapLaw::none) continue;
    line(prefix + "min", std::to_string(gap->min));
    if (gap->law != GapLaw::constant) line(prefix + "max", std::to_string(gap->max));
    line(prefix + "probability", shortest(gap->probability));
    line(prefix + "start", std::to_string(gap->start));
    line(prefix + "content", to_string(gap->content));
    if (gap->law != GapLaw::lognormal) continue;
    line(prefix + "mu", shortest(gap->mu));
    line(prefix + "sigma", shortest(gap->sigma));
  }
  return out;
}

}  // namespace sb
