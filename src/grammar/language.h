// Interface of a sequence source: hidden states, each emitting a symbol. Tasks, metrics and filter use languages only
// through this interface. Automata (grammar/sampler.h) are the first implementation.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sb {

enum class Split { train, valid, test, reference };  // `reference`: as published, it overlaps the training samples

Split parse_split(const std::string& name);
const char* to_string(Split);

// State indices of `count` samples, row-major [count][length]. 16 bits suffice for up to 65,536 states.
struct SampleBlock {
  uint64_t first = 0;
  int length = 0;
  std::vector<uint16_t> states;
  size_t count() const { return length == 0 ? 0 : states.size() / static_cast<size_t>(length); }
  const uint16_t* sample(size_t i) const { return states.data() + i * static_cast<size_t>(length); }
};

struct Successor {
  int32_t state;
  double probability;
};

// A sample is a sequence of strings, cut at length() elements. It is a pure function of (language, split, index):
// thread count, order and resuming do not change its bytes. States have an index, used here, and an id, which models
// predict.
class Language {
 public:
  virtual ~Language() = default;

  virtual int length() const = 0;                           // elements per sample; also the maximum length of a string
  virtual uint64_t seed() const = 0;                        // seeds what a task adds to its samples: gaps, noise
  virtual int classes() const = 0;                          // number of symbol classes
  virtual const std::vector<int32_t>& symbols() const = 0;  // [states]: class that each state emits
  virtual const std::vector<int32_t>& ids() const = 0;  // [states]: id of each state, a permutation of 0 .. states-1
  virtual std::string canonical_text() const = 0;       // canonical: equal texts mean equal samples

  // Samples first .. first+count-1, [count][length] state indices.
  virtual void draw(Split split, uint64_t first, size_t count, uint16_t* states) const = 0;
  virtual void check_split(Split) const {}  // throws bad_input if the split cannot be drawn

  // The state that ends a string. It also precedes the first string.
  virtual int32_t end() const = 0;
  // Distribution of the element after `state`, in a fixed order; after end(), of the first element of a string. Lengths
  // are not considered. If at most `left` elements may follow s, the probability that t follows s is
  //   p(t) ends_within(left - 1, t) / ends_within(left, s).
  virtual void successors(int32_t state, std::vector<Successor>& out) const = 0;
  // P(a string now in `state` ends within this many more elements), for 0 .. length(); 1 at end().
  virtual double ends_within(int elements, int32_t state) const = 0;

  virtual std::optional<double> topological_entropy() const { return std::nullopt; }  // of the strings, if known

  int states() const { return static_cast<int>(symbols().size()); }
  void sample(Split split, uint64_t index, uint16_t* states) const { draw(split, index, 1, states); }
  SampleBlock block(Split split, uint64_t first, size_t count, int threads) const;  // threads 0: all cores
};

// Distribution of the next element's class, [classes]: the target of the objective `predict`.
void next_symbol_law(const Language& language, int32_t state, double* law);
// For each state index, the classes that cannot follow it, ascending; every class for end().
std::vector<std::vector<int32_t>> forbidden_classes(const Language& language);

}  // namespace sb
