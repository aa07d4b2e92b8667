#include "tasks/gap_process.h"

#include <algorithm>
#include <cmath>

#include "random/philox.h"
#include "tasks/lognormal.h"

namespace sb {
namespace {

uint64_t scaled(uint32_t word, uint64_t size) {
  return (word * size) >> 32;
}

// Words 0, 1, … of a stream in order, four to a block.
class Words {
 public:
  explicit Words(const PhiloxStream& stream, uint32_t first = 0) : stream_(stream), next_(first) {
    if (next_ % 4 != 0) block_ = stream_.block(next_ / 4);
  }
  uint32_t next() {
    if (next_ % 4 == 0) block_ = stream_.block(next_ / 4);
    return block_[next_++ % 4];
  }

 private:
  PhiloxStream stream_;
  PhiloxBlock block_{};
  uint32_t next_;
};

}  // namespace

GapProcess::GapProcess(const Language& language, const TaskConfig& config)
    : GapProcess(language.seed(), forbidden_classes(language), config) {}

GapProcess::GapProcess(uint64_t seed, std::vector<std::vector<int32_t>> forbidden, const TaskConfig& config)
    : config_(config), seed_(seed), forbidden_(std::move(forbidden)) {
  check(config_);
  const auto prepare = [](const GapConfig& gap) {
    Draws draws;
    draws.place = static_cast<uint64_t>(std::floor(gap.probability * 0x1p32 + 0.5));
    if (gap.law == GapLaw::lognormal) draws.thresholds = lognormal_thresholds(gap);
    return draws;
  };
  train_ = prepare(config_.train);
  test_ = prepare(config_.test);
}

void GapProcess::draw_lengths(const GapConfig& gap, const Draws& draws, Split split, uint64_t index, int length,
                              int32_t* out) const {
  const int begin = std::min(gap.start, length);
  const auto first = static_cast<uint32_t>(begin);
  Words words(PhiloxStream(seed_, static_cast<uint32_t>(split), index, Purpose::gap_length), first);
  std::fill(out, out + begin, 0);
  switch (gap.law) {
    case GapLaw::none:
      std::fill(out + begin, out + length, 0);
      return;
    case GapLaw::constant:
      std::fill(out + begin, out + length, gap.min);
      break;
    case GapLaw::uniform: {
      const uint64_t halves = 2 * static_cast<uint64_t>(gap.max - gap.min);
      for (int e = begin; e < length; ++e) {
        out[e] = gap.min + (halves == 0 ? 0 : static_cast<int32_t>((scaled(words.next(), halves) + 1) / 2));
      }
      break;
    }
    case GapLaw::lognormal:
      for (int e = begin; e < length; ++e) {
        const auto above = std::upper_bound(draws.thresholds.begin(), draws.thresholds.end(), words.next());
        out[e] = gap.min + static_cast<int32_t>(above - draws.thresholds.begin());
      }
      break;
  }
  if (draws.place >> 32 != 0) return;
  Words places(PhiloxStream(seed_, static_cast<uint32_t>(split), index, Purpose::gap_place), first);
  for (int e = begin; e < length; ++e) {
    if (places.next() >= draws.place) out[e] = 0;
  }
}

void GapProcess::draw(Split split, uint64_t index, const uint16_t* states, int length, Gaps& out) const {
  const GapConfig& gap = law(split);
  out.length.resize(static_cast<size_t>(length));
  out.wrong.clear();
  draw_lengths(gap, split == Split::train ? train_ : test_, split, index, length, out.length.data());
  if (gap.law == GapLaw::none || gap.content == GapContent::blank) return;
  Words words(PhiloxStream(seed_, static_cast<uint32_t>(split), index, Purpose::wrong_symbol));
  for (int e = 0; e < length; ++e) {
    const std::vector<int32_t>& classes = forbidden_[states[e]];
    if (classes.empty()) out.length[e] = 0;
    for (int i = 0; i < out.length[e]; ++i) out.wrong.push_back(classes[scaled(words.next(), classes.size())]);
  }
}

}  // namespace sb
