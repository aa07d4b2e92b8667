#include "findings/svg_axis.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/portable.h"

namespace sb {

double SvgAxis::at(double value) const {
  const double share = log ? (portable::log(value) - portable::log(low)) / (portable::log(high) - portable::log(low))
                           : (value - low) / (high - low);
  return from + share * (to - from);
}

Ticks ticks_over(double low, double high, int most) {
  if (!(high > low)) high = low + 1;
  const double least = (high - low) / most;  // of a step
  // The step is whole / over: its multiples are exact to the last bit.
  double whole = 1, over = 1;
  int decimals = 0;
  for (; whole / over > least && decimals < 12; ++decimals) over *= 10;
  for (int factor = 0; whole / over < least; factor = (factor + 1) % 3) {
    if (factor == 1)
      whole = whole / 2 * 5;  // 2 to 5
    else if (factor == 2 && decimals > 0) {
      whole = whole / 5;
      over /= 10;
      --decimals;
    } else
      whole *= 2;
  }
  Ticks out;
  out.decimals = decimals;
  const auto first = static_cast<long long>(std::floor(low * over / whole + 1e-9));
  const auto last = static_cast<long long>(std::ceil(high * over / whole - 1e-9));
  for (long long k = first; k <= last; ++k) out.values.push_back(static_cast<double>(k) * whole / over);
  return out;
}

std::vector<double> spread_labels(const std::vector<double>& wanted, double distance, double low, double high) {
  std::vector<size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  // Blocks of touching labels. Each block is centred on the mean of the wanted positions, and is merged with the block
  // before it if they overlap.
  struct Block {
    double first;  // centre of its first label
    size_t count;
  };
  std::vector<Block> blocks;
  const auto place = [&](double mean, size_t count) {
    const double length = static_cast<double>(count - 1) * distance;
    return std::clamp(mean - length / 2, low, std::max(low, high - length));
  };
  std::vector<double> sums;
  for (const size_t i : order) {
    blocks.push_back({place(wanted[i], 1), 1});
    sums.push_back(wanted[i]);
    while (blocks.size() > 1) {
      Block& before = blocks[blocks.size() - 2];
      if (before.first + static_cast<double>(before.count) * distance <= blocks.back().first) break;
      before.count += blocks.back().count;
      sums[sums.size() - 2] += sums.back();
      blocks.pop_back();
      sums.pop_back();
      blocks.back().first = place(sums.back() / static_cast<double>(blocks.back().count), blocks.back().count);
    }
  }
  std::vector<double> out(wanted.size());
  size_t at = 0;
  for (const Block& block : blocks)
    for (size_t k = 0; k < block.count; ++k) out[order[at++]] = block.first + static_cast<double>(k) * distance;
  return out;
}

}  // namespace sb
