#include "grammar/reference_walk.h"

#include <algorithm>

#include "base/error.h"
#include "base/format.h"

namespace sb {

uint32_t uniform_edge_by_sums(uint64_t draw53, uint32_t n) {
  const double u = static_cast<double>(draw53) * 0x1p-53;
  const double p = 1.0 / n;
  double sum = p;
  uint32_t i = 0;
  while (i + 1 < n && sum <= u) {
    sum += p;
    ++i;
  }
  return i;
}

// One sample under way. The buffer has room for a last string that runs past the cut.
struct ReferenceWalk::Lane {
  Pcg64 rng;
  uint64_t index;
  uint16_t* buffer;  // [2 * length + 1]
  size_t begin = 0;  // of the string under way
  size_t size = 0;   // elements written
  uint64_t attempts = 0;
  int string_attempts = 0;
};

ReferenceWalk::ReferenceWalk(const Automaton& a, int length)
    : length_(length),
      end_(static_cast<uint32_t>(a.end)),
      start_(a.start.begin(), a.start.end()),
      dst_(a.dst.begin(), a.dst.end()) {
  for (int s = 0; s < a.states(); ++s) {
    const int degree = a.out_degree(s);
    const auto p = a.prob.begin() + a.row[s];
    rows_.push_back({static_cast<uint32_t>(a.row[s]), static_cast<uint32_t>(degree)});
    uniform_.push_back(std::all_of(p, p + degree, [&](double v) { return v == 1.0 / degree; }) ? 1 : 0);
  }
  all_uniform_ = std::find(uniform_.begin(), uniform_.end(), 0) == uniform_.end();
  if (all_uniform_) return;
  sums_ = a.prob;
  for (int s = 0; s < a.states(); ++s) {
    for (int e = a.row[s] + 1; e < a.row[s + 1]; ++e) sums_[e] = sums_[e - 1] + a.prob[e];
  }
}

void ReferenceWalk::begin_string(Lane& lane) const {
  ++lane.attempts;
  lane.size = lane.begin;
  lane.buffer[lane.size++] = start_[lane.rng.bounded(start_.size() - 1)];
}

// Takes or rejects the string under way; true when the sample is complete.
bool ReferenceWalk::end_string(Lane& lane) const {
  if (++lane.string_attempts > kMaxStringAttempts) {
    throw check_failed(
        "sample",
        formatted("sample {}: no string of at most {} elements in {} attempts, at which the reference gives up, "
                  "too; expected a larger length or stream = direct",
                  lane.index, length_, kMaxStringAttempts));
  }
  if (lane.size - lane.begin > static_cast<size_t>(length_)) return false;
  lane.begin = lane.size;
  lane.string_attempts = 0;
  return lane.begin >= static_cast<size_t>(length_);
}

uint32_t ReferenceWalk::successor(Lane& lane, uint32_t state) const {
  const Row row = rows_[state];
  if (row.degree == 1) return dst_[row.first];
  const uint64_t draw = lane.rng.next64();
  if (all_uniform_ || uniform_[state] != 0) return dst_[row.first + uniform_edge(draw, row.degree)];
  const auto from = sums_.begin() + row.first;
  const double u = static_cast<double>(draw >> 11) * 0x1p-53;
  const auto edge = static_cast<uint32_t>(std::upper_bound(from, from + row.degree, u) - from);
  return dst_[row.first + std::min(edge, row.degree - 1)];
}

void ReferenceWalk::run(uint64_t first, size_t count, const std::function<Pcg64(uint64_t)>& stream, uint16_t* out,
                        WalkTrace* traces) const {
  const auto length = static_cast<size_t>(length_);
  const size_t room = 2 * length + 1;
  const size_t most = length > 100000 ? 1 : 8;  // buffers of long samples would only evict each other
  const size_t open_at_once = std::min(most, count);
  std::vector<uint16_t> buffers(open_at_once * room);
  std::vector<Lane> lanes;
  size_t next = 0;
  const auto open = [&](uint16_t* buffer) {
    Lane lane{stream(first + next), first + next, buffer};
    begin_string(lane);
    ++next;
    return lane;
  };
  while (lanes.size() < open_at_once) lanes.push_back(open(buffers.data() + lanes.size() * room));
  while (!lanes.empty()) {
    for (size_t l = 0; l < lanes.size(); ++l) {
      Lane& lane = lanes[l];
      const uint32_t state = successor(lane, lane.buffer[lane.size - 1]);
      lane.buffer[lane.size++] = static_cast<uint16_t>(state);
      if (state != end_ && lane.size - lane.begin <= length) [[likely]]
        continue;
      if (!end_string(lane)) {
        begin_string(lane);
        continue;
      }
      const size_t i = lane.index - first;
      std::copy_n(lane.buffer, length, out + i * length);
      if (traces != nullptr) traces[i] = {lane.attempts, lane.rng.next64()};
      if (next < count) {
        lane = open(lane.buffer);
      } else {
        lane = lanes.back();
        lanes.pop_back();
      }
    }
  }
}

}  // namespace sb
