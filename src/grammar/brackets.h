// Brackets of several types that open and close, up to a maximum depth.
//   symbols s = ceil(types / share);  type t opens as symbol t div share and closes as symbol t mod s.
// With share > 1, types look alike. The types that may open directly inside a type, and the closing symbols, tell them
// apart. docs/tasks.md#dyck has the distribution.
#pragma once
#include "grammar/language.h"

namespace sb {

struct BracketConfig {
  uint64_t seed = 1;
  int types = 4;
  int share = 2;     // types per opening symbol
  int children = 2;  // types that may open directly inside a type
  int depth = 4;     // maximum number of open brackets
  int length = 200;  // brackets per sample

  int symbols() const { return (types + share - 1) / share; }
};

// The types that may open: entry 0 outside of all brackets, which are all types, entry 1 + t directly inside type t.
// Inside type t, these are the first `children` entries of a Fisher-Yates shuffle of 0 .. types-1, which exchanges
// entry i with entry i + (w * (types - i) >> 32), w = word i of the PhiloxStream (seed, 0, 1 + t, signal). Ascending.
std::vector<std::vector<int>> bracket_rules(const BracketConfig& config);

// A state is a stack of open brackets together with the bracket that led to it. Stacks are numbered by depth; stack 0
// is empty. With n stacks,
//   state q < n        the top of stack q was opened; state 0 precedes the first bracket;
//   state n + q s + c  a bracket on stack q was closed, with closing symbol c.
// Class 2c is opening symbol c, class 2c + 1 closing symbol c. A state's id is its index.
class BracketLanguage final : public Language {
 public:
  explicit BracketLanguage(const BracketConfig& config);  // throws bad_input if there are more than 65536 states

  static constexpr int kEmpty = -1;
  int top(int32_t state) const { return type_[stack_of(state)]; }  // type of the innermost open bracket, or kEmpty

  int length() const override { return config_.length; }
  uint64_t seed() const override { return config_.seed; }
  int classes() const override { return 2 * config_.symbols(); }
  const std::vector<int32_t>& symbols() const override { return symbols_; }
  const std::vector<int32_t>& ids() const override { return ids_; }
  std::string canonical_text() const override;
  // Block e of the PhiloxStream (seed, split, index, symbol) decides bracket e: it opens if the highest bit of the
  // first word is 0, unless only one of both is possible; the second word w selects entry (w * size >> 32) of the
  // rules.
  void draw(Split split, uint64_t first, size_t count, uint16_t* states) const override;
  int32_t end() const override { return 0; }
  void successors(int32_t state, std::vector<Successor>& out) const override;
  double ends_within(int, int32_t) const override { return 1; }  // samples are cut, so strings need not end

 private:
  void grow();
  size_t stacks() const { return type_.size(); }
  size_t stack_of(int32_t state) const;
  int openings(size_t stack) const { return stack + 1 < first_.size() ? first_[stack + 1] - first_[stack] : 0; }
  int32_t opened(size_t stack, int choice) const { return first_[stack] + choice; }
  int32_t closed(size_t stack) const;

  BracketConfig config_;
  std::vector<int32_t> type_, below_;  // [stacks]: type of the top, and the stack without it
  std::vector<int32_t> first_;         // [stacks below the maximum depth + 1]: first stack with one bracket more
  std::vector<int32_t> symbols_, ids_;
};

}  // namespace sb
