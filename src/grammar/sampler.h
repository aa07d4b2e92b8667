// Sequences of an automaton: strings ending in '#', concatenated and cut at `length` elements.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/automaton.h"
#include "random/pcg64.h"

namespace sb {

enum class Stream { reference, direct };             // rejection as published | same law, no rejection
enum class Split { train, valid, test, reference };  // `reference`: test and training samples overlap, as published

Stream parse_stream(const std::string& name);
Split parse_split(const std::string& name);
const char* to_string(Stream);
const char* to_string(Split);

// Of the table behind Sampler::reach, (length + 1) x states: 2 GB.
constexpr int64_t kMaxReachEntries = int64_t{1} << 28;

struct SamplerConfig {
  uint64_t seed = 1;
  int length = 200;  // elements a sample; also the longest accepted string
  Stream stream = Stream::reference;
};

// The generator of a sample, in numpy's words:
//   stream reference: default_rng(seed * i) for train and reference, default_rng([seed, 1, i]) for valid, [seed, 2, i]
//   for test; stream direct:    default_rng([seed, 3, i]) for train and reference, [seed, 4, i] for valid, [seed, 5, i]
//   for test.
// Train reaches a stream of valid or test only past index 2^32 / seed: numpy takes [seed, 1, 0] and 2^32 + seed for the
// same. seed * i is the exact product (the reference stops at 2^32; numpy, and so we, take integers of any size).
Pcg64 sample_stream(const SamplerConfig& config, Split split, uint64_t index);
// Throws bad_input for seed 0 where it would make all training samples equal. Sampler calls it too.
void check_split(const SamplerConfig& config, Split split);

// State indices of `count` samples, row-major [count][length]; 16 bits hold every automaton of up to 65,536 states.
struct SampleBlock {
  uint64_t first = 0;
  int length = 0;
  std::vector<uint16_t> states;
  size_t count() const { return length == 0 ? 0 : states.size() / static_cast<size_t>(length); }
  const uint16_t* sample(size_t i) const { return states.data() + i * static_cast<size_t>(length); }
};

// A sample is a pure function of (automaton, config, split, index): any thread count, order or resume gives the same
// bytes.
class Sampler {
 public:
  Sampler(std::shared_ptr<const Automaton> automaton, SamplerConfig config);
  ~Sampler();
  Sampler(Sampler&&) noexcept;

  const Automaton& automaton() const;
  const SamplerConfig& config() const;
  void sample(Split split, uint64_t index, uint16_t* states) const;                 // `length` state indices
  SampleBlock block(Split split, uint64_t first, size_t count, int threads) const;  // threads 0: all cores
  // P(reach '#' within k steps from state s), k = 0..length; the table behind the direct stream and the exact ceiling.
  double reach(int k, int s) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sb
