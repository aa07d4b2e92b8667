#include "grammar/brackets.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/format.h"
#include "grammar/build.h"
#include "random/philox.h"

namespace sb {

std::vector<std::vector<int>> bracket_rules(const BracketConfig& config) {
  std::vector<int> all(static_cast<size_t>(config.types));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<int>> rules(all.size() + 1, all);
  for (size_t row = 1; row < rules.size(); ++row) {
    std::vector<int>& inside = rules[row];
    const PhiloxStream stream(config.seed, 0, row, Purpose::signal);
    const auto children = static_cast<size_t>(config.children);
    for (size_t i = 0; i < children; ++i) {
      const uint64_t word = stream.word(static_cast<uint32_t>(i));
      std::swap(inside[i], inside[i + (word * (all.size() - i) >> 32)]);
    }
    inside.resize(children);
    std::sort(inside.begin(), inside.end());
  }
  return rules;
}

BracketLanguage::BracketLanguage(const BracketConfig& config) : config_(config) {
  grow();
  const auto symbols = static_cast<size_t>(config_.symbols());
  symbols_.push_back(0);  // never shown
  for (size_t stack = 1; stack < stacks(); ++stack) symbols_.push_back(2 * (type_[stack] / config_.share));
  for (size_t i = 0; i < (first_.size() - 1) * symbols; ++i)
    symbols_.push_back(2 * static_cast<int32_t>(i % symbols) + 1);
  ids_.resize(symbols_.size());
  std::iota(ids_.begin(), ids_.end(), 0);
}

void BracketLanguage::grow() {
  const std::vector<std::vector<int>> rules = bracket_rules(config_);
  const auto symbols = static_cast<size_t>(config_.symbols());
  type_ = {kEmpty};
  below_ = {0};
  size_t stack = 0;
  for (int depth = 0; depth < config_.depth; ++depth) {
    for (const size_t end = stacks(); stack < end; ++stack) {
      first_.push_back(static_cast<int32_t>(stacks()));
      for (const int type : rules[static_cast<size_t>(type_[stack] + 1)]) {
        type_.push_back(type);
        below_.push_back(static_cast<int32_t>(stack));
      }
      if (stacks() + first_.size() * symbols > static_cast<size_t>(kMaxStates))
        throw bad_input("task.depth", formatted("depth {} with {} types and {} children needs more than {} states, "
                                                "expected a smaller depth, or fewer types or children",
                                                config_.depth, config_.types, config_.children, kMaxStates));
    }
  }
  first_.push_back(static_cast<int32_t>(stacks()));
}

std::string BracketLanguage::canonical_text() const {
  return formatted("brackets\nseed = {}\ntypes = {}\nshare = {}\nchildren = {}\ndepth = {}\nlength = {}\n",
                   config_.seed, config_.types, config_.share, config_.children, config_.depth, config_.length);
}

size_t BracketLanguage::stack_of(int32_t state) const {
  const auto s = static_cast<size_t>(state);
  return s < stacks() ? s : (s - stacks()) / static_cast<size_t>(config_.symbols());
}

int32_t BracketLanguage::closed(size_t stack) const {
  const int symbols = config_.symbols();
  return static_cast<int32_t>(stacks()) + below_[stack] * symbols + type_[stack] % symbols;
}

void BracketLanguage::draw(Split split, uint64_t first, size_t count, uint16_t* states) const {
  for (size_t i = 0; i < count; ++i) {
    const PhiloxStream stream(config_.seed, static_cast<uint32_t>(split), first + i, Purpose::symbol);
    size_t stack = 0;
    for (int e = 0; e < config_.length; ++e) {
      const PhiloxBlock words = stream.block(static_cast<uint32_t>(e));
      const int choices = openings(stack);
      const bool opens = stack == 0 || (choices > 0 && words[0] >> 31 == 0);
      const int32_t state =
          opens ? opened(stack, static_cast<int>(words[1] * static_cast<uint64_t>(choices) >> 32)) : closed(stack);
      *states++ = static_cast<uint16_t>(state);
      stack = stack_of(state);
    }
  }
}

void BracketLanguage::successors(int32_t state, std::vector<Successor>& out) const {
  out.clear();
  const size_t stack = stack_of(state);
  const int choices = openings(stack);
  const double opens = stack == 0 ? 1 : choices > 0 ? 0.5 : 0;
  for (int i = 0; i < choices; ++i) out.push_back({opened(stack, i), opens / choices});
  if (stack != 0) out.push_back({closed(stack), 1 - opens});
}

}  // namespace sb
