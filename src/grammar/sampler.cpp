#include "grammar/sampler.h"

#include <cmath>
#include <iterator>
#include <mutex>

#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "base/sha256.h"
#include "grammar/check.h"
#include "grammar/direct_walk.h"
#include "grammar/figures.h"
#include "grammar/reach.h"
#include "grammar/reference_walk.h"

namespace sb {
namespace {

// Digest of everything that samples depend on.
std::string digest_of(const Automaton& a) {
  std::string text = formatted("{} {}", a.vocab, a.end);
  const auto add = [&](char name, const std::vector<int32_t>& values) {
    text += name;
    for (const int32_t value : values) text += formatted(" {}", value);
  };
  add('s', a.symbol);
  add('i', a.id);
  add('b', a.start);
  add('r', a.row);
  add('d', a.dst);
  text += 'p';
  for (const double p : a.prob) {
    text += ' ';
    append_shortest(text, p);
  }
  return sha256_hex(text);
}

}  // namespace

Stream parse_stream(const std::string& name) {
  if (name == to_string(Stream::reference)) return Stream::reference;
  if (name == to_string(Stream::direct)) return Stream::direct;
  throw bad_input("stream", "unknown name, expected one of reference, direct, got '" + name + "'");
}

const char* to_string(Stream stream) {
  return stream == Stream::reference ? "reference" : "direct";
}

void check_split(const SamplerConfig& config, Split split) {
  if (config.seed == 0 && config.stream == Stream::reference && split == Split::train) {
    throw bad_input("sample.seed",
                    "seed 0 makes all training samples equal (sample i is drawn from seed * i), expected a seed of at "
                    "least 1, split = reference (equal samples, as published) or stream = direct, got 0");
  }
}

Pcg64 sample_stream(const SamplerConfig& config, Split split, uint64_t index) {
  if (config.stream == Stream::direct) {
    const unsigned number = split == Split::valid ? 4 : split == Split::test ? 5 : 3;
    return Pcg64({config.seed, number, index});
  }
  if (split == Split::valid) return Pcg64({config.seed, 1, index});
  if (split == Split::test) return Pcg64({config.seed, 2, index});
  return Pcg64(uint128{config.seed} * index);
}

struct Sampler::Impl {
  std::shared_ptr<const Automaton> automaton;
  SamplerConfig config;
  std::unique_ptr<ReferenceWalk> reference;
  std::unique_ptr<DirectWalk> direct;
  mutable std::once_flag reach_made;
  mutable std::unique_ptr<const ReachTable> reach_table;

  const ReachTable& reach() const {
    std::call_once(reach_made, [&] {
      const int64_t entries = (int64_t{config.length} + 1) * automaton->states();
      if (entries > kMaxReachEntries) {
        throw bad_input("sample.length",
                        formatted("table of {} lengths times {} states, expected at most {} entries, got {}",
                                  config.length + 1, automaton->states(), kMaxReachEntries, entries));
      }
      reach_table = std::make_unique<const ReachTable>(*automaton, config.length);
    });
    return *reach_table;
  }

  void run(Split split, uint64_t first, size_t count, uint16_t* out) const {
    const auto stream = [&](uint64_t index) { return sample_stream(config, split, index); };
    if (direct) {
      direct->run(first, count, stream, out);
    } else {
      reference->run(first, count, stream, out);
    }
  }
};

Sampler::Sampler(std::shared_ptr<const Automaton> automaton, SamplerConfig config) : impl_(std::make_unique<Impl>()) {
  constexpr int kMaxLength = 1 << 24;
  check(*automaton);
  if (config.length < 1 || config.length > kMaxLength) {
    throw bad_input("sample.length",
                    formatted("elements of a sample, expected 1 to {}, got {}", kMaxLength, config.length));
  }
  // Rejects the language if fewer than half of the strings would be found within the reference's number of attempts.
  const double needed = config.stream == Stream::reference ? std::log(2.0) / kMaxStringAttempts : 1e-200;
  if (const double fit = fit_probability(*automaton, config.length, needed); fit < needed) {
    throw bad_input(
        "sample.length",
        fit == 0 ? formatted("no string of at most {} elements ('#' counted), expected a larger length", config.length)
                 : formatted("a string has at most {} elements with probability {:.3g} only, expected at least {:.3g} "
                             "for stream = {}",
                             config.length, fit, needed, to_string(config.stream)));
  }
  impl_->automaton = std::move(automaton);
  impl_->config = config;
  if (config.stream == Stream::direct) {
    impl_->direct = std::make_unique<DirectWalk>(*impl_->automaton, impl_->reach(), config.length);
  } else {
    impl_->reference = std::make_unique<ReferenceWalk>(*impl_->automaton, config.length);
  }
}

Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;

const Automaton& Sampler::automaton() const {
  return *impl_->automaton;
}
const SamplerConfig& Sampler::config() const {
  return impl_->config;
}
int Sampler::length() const {
  return impl_->config.length;
}
uint64_t Sampler::seed() const {
  return impl_->config.seed;
}
int Sampler::classes() const {
  return impl_->automaton->vocab;
}
const std::vector<int32_t>& Sampler::symbols() const {
  return impl_->automaton->symbol;
}
const std::vector<int32_t>& Sampler::ids() const {
  return impl_->automaton->id;
}
int32_t Sampler::end() const {
  return impl_->automaton->end;
}
double Sampler::ends_within(int elements, int32_t state) const {
  return impl_->reach().at(elements, state);
}

std::string Sampler::canonical_text() const {
  return formatted("grammar.automaton_sha256 = {}\ngrammar.seed = {}\ntask.length = {}\ntask.stream = {}\n",
                   digest_of(*impl_->automaton), seed(), length(), to_string(impl_->config.stream));
}

void Sampler::successors(int32_t state, std::vector<Successor>& out) const {
  const Automaton& a = *impl_->automaton;
  out.clear();
  if (state == a.end) {
    for (const int32_t s : a.start) out.push_back({s, 1.0 / static_cast<double>(a.start.size())});
    return;
  }
  for (int edge = a.row[state]; edge < a.row[state + 1]; ++edge) out.push_back({a.dst[edge], a.prob[edge]});
}

void Sampler::check_split(Split split) const {
  sb::check_split(impl_->config, split);
}

void Sampler::draw(Split split, uint64_t first, size_t count, uint16_t* states) const {
  check_split(split);
  impl_->run(split, first, count, states);
}

std::optional<double> Sampler::topological_entropy() const {
  const double entropy = sb::topological_entropy(automaton());
  return std::isfinite(entropy) ? std::optional(entropy) : std::nullopt;
}

}  // namespace sb
