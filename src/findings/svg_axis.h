// From numbers to places in a figure: axes, their ticks, and labels that do not overlap.
#pragma once
#include <vector>

namespace sb {

// Maps [low, high] to the pixels [from, to], low < high; a logarithmic axis needs low > 0.
struct SvgAxis {
  double low = 0, high = 1, from = 0, to = 1;
  bool log = false;

  double at(double value) const;
};

struct Ticks {
  std::vector<double>
      values;        // multiples of a step of 1, 2 or 5 times a power of ten; the first <= low, the last >= high
  int decimals = 0;  // that the step needs
};
// The smallest such step that covers the range in `most` steps, plus one if the ends are not multiples of it.
Ticks ticks_over(double low, double high, int most);

// Centres of labels, as near as possible to where they are wanted, at least `distance` apart and within [low, high],
// which has room for all of them; in the order of `wanted`.
std::vector<double> spread_labels(const std::vector<double>& wanted, double distance, double low, double high);

}  // namespace sb
