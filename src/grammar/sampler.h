// Sequences of an automaton: strings ending in '#', concatenated and cut at `length` elements.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/language.h"
#include "random/pcg64.h"

namespace sb {

enum class Stream { reference, direct };  // rejection as published | same distribution, no rejection

Stream parse_stream(const std::string& name);
const char* to_string(Stream);

// Limit on the table behind Sampler::ends_within, (length + 1) x states: 2 GB.
constexpr int64_t kMaxReachEntries = int64_t{1} << 28;

struct SamplerConfig {
  uint64_t seed = 1;
  int length = 200;  // elements per sample; also the maximum length of a string
  Stream stream = Stream::reference;
};

// The generator of a sample, in numpy's terms:
//   stream reference: default_rng(seed * i) for train and reference,
//                     default_rng([seed, 1, i]) for valid, default_rng([seed, 2, i]) for test;
//   stream direct:    default_rng([seed, 3, i]) for train and reference,
//                     default_rng([seed, 4, i]) for valid, default_rng([seed, 5, i]) for test.
// A train stream can equal a valid or test stream only past index 2^32 / seed: numpy treats [seed, 1, 0] and 2^32 +
// seed alike. seed * i is the exact product (the reference stops at 2^32; numpy and this function take integers of any
// size).
Pcg64 sample_stream(const SamplerConfig& config, Split split, uint64_t index);
// Throws bad_input if seed 0 would make all training samples equal.
void check_split(const SamplerConfig& config, Split split);

// The language of an automaton.
class Sampler final : public Language {
 public:
  Sampler(std::shared_ptr<const Automaton> automaton, SamplerConfig config);
  ~Sampler() override;
  Sampler(Sampler&&) noexcept;

  const Automaton& automaton() const;
  const SamplerConfig& config() const;

  int length() const override;
  uint64_t seed() const override;
  int classes() const override;
  const std::vector<int32_t>& symbols() const override;
  const std::vector<int32_t>& ids() const override;
  std::string canonical_text() const override;
  void draw(Split split, uint64_t first, size_t count, uint16_t* states) const override;
  void check_split(Split split) const override;
  int32_t end() const override;
  void successors(int32_t state, std::vector<Successor>& out) const override;
  double ends_within(int elements, int32_t state) const override;  // a table; also used by the direct stream
  std::optional<double> topological_entropy() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sb
