// Axes of figures, their ticks, and labels that do not overlap.
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
// Ticks with the smallest such step that covers the range in `most` steps, plus one if the ends are not multiples of
// the step.
Ticks ticks_over(double low, double high, int most);

// Centres of labels in the order of `wanted`: as near as possible to the wanted positions, at least `distance` apart,
// and within [low, high], which must have room for all of them.
std::vector<double> spread_labels(const std::vector<double>& wanted, double distance, double low, double high);

}  // namespace sb
