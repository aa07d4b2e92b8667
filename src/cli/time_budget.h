// What may still be begun within a limit of time.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace sb::cli {

// "90s", "9m", "1.5h", or seconds; 1 s to 1000 h. Throws bad_input "[where] …".
double parse_duration(const std::string& text, const std::string& where);

class TimeBudget {
 public:
  using Clock = std::function<double()>;  // seconds
  TimeBudget() = default;                 // without a limit
  // `used`: seconds of the limit that were spent before.
  TimeBudget(double seconds, Clock clock, double used = 0);

  bool limited() const { return limit_.has_value(); }
  bool over() const { return limit_ && left() <= 0; }
  double left() const;

  // Which of the runs that wait is begun next, by their estimates in seconds (nothing: unknown), in their order;
  // nothing: none. The first that can be finished in time, as far as is known. One that takes longer than the whole
  // limit can only be done in pieces: it is begun where none is left that can be finished, and a tenth of the limit
  // still is. So is the first where nothing was begun so far: a run that just fits the limit, but not what is left of
  // it after the start, would never be.
  std::optional<size_t> next(const std::vector<std::optional<double>>& estimates);

 private:
  std::optional<double> limit_;
  Clock clock_;
  double end_ = 0;
  bool begun_ = false;
};

}  // namespace sb::cli
