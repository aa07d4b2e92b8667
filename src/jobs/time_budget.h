// Decides which runs may still start within a time limit.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sb {

// "90s", "9m", "1.5h", or seconds; 1 s to 1000 h. Throws bad_input "[where] …".
double parse_duration(const std::string& text, const std::string& where);

class TimeBudget {
 public:
  using Clock = std::function<double()>;  // seconds
  TimeBudget() = default;                 // without a limit
  TimeBudget(double seconds, Clock clock);

  bool limited() const { return limit_.has_value(); }
  bool over() const { return limit_ && left() <= 0; }
  double left() const;

  // Index of the waiting run to start next, or nullopt. `estimates`: seconds of the waiting runs in order; nullopt:
  // unknown. Takes the first run that should finish in time; unknown estimates count as fitting. If there is none and
  // at least a tenth of the limit is left, takes the first run that is longer than the whole limit, since it can only
  // be done in parts. If nothing was started before, takes the first run: otherwise a run that just fits the limit, but
  // not the time left after the start, would never run.
  std::optional<size_t> next(const std::vector<std::optional<double>>& estimates);

 private:
  std::optional<double> limit_;
  Clock clock_;
  double end_ = 0;
  bool begun_ = false;
};

}  // namespace sb
