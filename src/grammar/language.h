// What sequences are made of, whoever makes them: hidden states, each of which shows a symbol. Tasks, tally and filter
// see languages through this alone; those of automata (grammar/sampler.h) are the first.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace sb {

enum class Split { train, valid, test, reference };  // `reference`: test and training samples overlap, as published

Split parse_split(const std::string& name);
const char* to_string(Split);

// State indices of `count` samples, row-major [count][length]; 16 bits hold every language of up to 65,536 states.
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

// A sample is strings one after the other, cut at length() elements, and a pure function of (language, split, index):
// any thread count, order or resume gives the same bytes. States are numbered by index, and by id where a model is
// asked for them.
class Language {
 public:
  virtual ~Language() = default;

  virtual int length() const = 0;                           // elements a sample; also of the longest string
  virtual uint64_t seed() const = 0;                        // keys what a task adds to its samples: gaps, noise
  virtual int classes() const = 0;                          // of symbols
  virtual const std::vector<int32_t>& symbols() const = 0;  // [states]: class that each shows
  virtual const std::vector<int32_t>& ids() const = 0;      // [states]: its id, a permutation of 0 .. states-1
  virtual std::string text() const = 0;                     // canonical: equal texts, equal samples

  // Samples first .. first+count-1, [count][length] state indices.
  virtual void draw(Split split, uint64_t first, size_t count, uint16_t* states) const = 0;
  virtual void check_split(Split) const {}  // throws bad_input where the split cannot be drawn

  // The state that ends a string, and stands before the first one.
  virtual int32_t end() const = 0;
  // Law of the element after `state`, of a string's first one after end(); in a fixed order. Lengths are not looked at:
  // with `left` elements still to come at most, t follows s with probability p(t) ends_within(left - 1, t) /
  // ends_within(left, s).
  virtual void successors(int32_t state, std::vector<Successor>& out) const = 0;
  // P(a string in `state` ends within so many more elements), 0 .. length(); 1 at end().
  virtual double ends_within(int elements, int32_t state) const = 0;

  int states() const { return static_cast<int>(symbols().size()); }
  void sample(Split split, uint64_t index, uint16_t* states) const { draw(split, index, 1, states); }
  SampleBlock block(Split split, uint64_t first, size_t count, int threads) const;  // threads 0: all cores
};

// Law of the next element's class, [classes]: what the objective `predict` asks for.
void next_symbol_law(const Language& language, int32_t state, double* law);
// The same for every state, [states][classes], rows by state id: gather with Batch::target.
std::vector<float> symbol_law_table(const Language& language);
// Classes that cannot follow each state, ascending, by state index; every class after end().
std::vector<std::vector<int32_t>> forbidden_classes(const Language& language);

}  // namespace sb
