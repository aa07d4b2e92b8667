#include "grammar/direct_walk.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sb {

DirectWalk::DirectWalk(const Automaton& a, const ReachTable& reach, int length)
    : length_(static_cast<size_t>(length)),
      states_(a.names.size()),
      end_(static_cast<uint32_t>(a.end)),
      reach_(reach),
      start_(a.start.begin(), a.start.end()) {
  for (const uint16_t s : start_) {
    start_sums_.push_back((start_sums_.empty() ? 0.0 : start_sums_.back()) + reach.at(length - 1, s));
  }
  for (int s = 0; s < a.states(); ++s) {
    Row row{static_cast<uint32_t>(dst_.size()), 0, 0, true};
    for (int e = a.row[s]; e < a.row[s + 1]; ++e) {
      row.uniform = row.uniform && a.prob[e] == a.prob[a.row[s]];
      if (a.dst[e] == a.end) {
        row.end = a.prob[e];
        continue;
      }
      dst_.push_back(static_cast<uint16_t>(a.dst[e]));
      prob_.push_back(a.prob[e]);
      ++row.degree;
    }
    rows_.push_back(row);
  }
  most_.resize(length_ * states_);
  for (size_t k = 1; k < length_; ++k) {
    const double* h = reach.row(static_cast<int>(k) - 1);
    for (size_t s = 0; s < states_; ++s) {
      double most = 0;
      for (uint32_t e = rows_[s].first; e < rows_[s].first + rows_[s].degree; ++e) most = std::max(most, h[dst_[e]]);
      most_[k * states_ + s] = std::nextafter(static_cast<float>(most), std::numeric_limits<float>::infinity());
    }
  }
}

uint32_t DirectWalk::draw_start(Pcg64& rng) const {
  const double u = rng.random() * start_sums_.back();
  const auto at = std::upper_bound(start_sums_.begin(), start_sums_.end(), u) - start_sums_.begin();
  return start_[std::min(static_cast<size_t>(at), start_.size() - 1)];
}

uint32_t DirectWalk::by_weights(Pcg64& rng, const Row& row, const double* reach) const {
  double total = 0;
  for (uint32_t e = row.first; e < row.first + row.degree; ++e) total += prob_[e] * reach[dst_[e]];
  double left = rng.random() * total;
  uint32_t last = row.first;
  for (uint32_t e = row.first; e < row.first + row.degree; ++e) {
    const double weight = prob_[e] * reach[dst_[e]];
    if (weight > 0) last = e;
    left -= weight;
    if (left < 0) break;
  }
  return dst_[last];
}

uint32_t DirectWalk::successor(Pcg64& rng, uint32_t state, size_t left) const {
  constexpr int kTries = 32;
  const Row& row = rows_[state];
  if (row.end > 0 && rng.random() * reach_.at(static_cast<int>(left), static_cast<int>(state)) < row.end) return end_;
  const double* reach = reach_.row(static_cast<int>(left) - 1);
  if (row.uniform) {
    const double most = static_cast<double>(most_[left * states_ + state]);
    for (int i = 0; i < kTries; ++i) {
      // The integer part of draw * degree proposes an edge, its fraction decides.
      const uint128 product = uint128{rng.next64()} * row.degree;
      const uint32_t to = dst_[row.first + high64(product)];
      if (static_cast<double>(low64(product) >> 11) * 0x1p-53 * most < reach[to]) return to;
    }
  }
  return by_weights(rng, row, reach);
}

void DirectWalk::run(uint64_t first, size_t count, const std::function<Pcg64(uint64_t)>& stream, uint16_t* out) const {
  for (size_t i = 0; i < count; ++i) {
    Pcg64 rng = stream(first + i);
    uint16_t* sample = out + i * length_;
    for (size_t size = 0; size < length_;) {
      uint32_t state = draw_start(rng);
      sample[size++] = static_cast<uint16_t>(state);
      for (size_t left = length_ - 1; state != end_ && size < length_; --left) {
        state = successor(rng, state, left);
        sample[size++] = static_cast<uint16_t>(state);
      }
    }
  }
}

}  // namespace sb
