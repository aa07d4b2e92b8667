#include "grammar/sampler.h"

#include <fmt/format.h>

#include <cmath>
#include <mutex>

#include "base/error.h"
#include "base/parallel.h"
#include "grammar/check.h"
#include "grammar/direct_walk.h"
#include "grammar/reach.h"
#include "grammar/reference_walk.h"

namespace sb {
namespace {

constexpr size_t kGrain = 64;  // samples handed to a thread at a time

template <class T>
T parse(const std::string& where, const std::string& name, std::initializer_list<T> values) {
  std::string expected;
  for (const T value : values) {
    if (name == to_string(value)) return value;
    expected += std::string(expected.empty() ? "" : ", ") + to_string(value);
  }
  throw bad_input(where, fmt::format("unknown name, expected one of {}, got '{}'", expected, name));
}

}  // namespace

Stream parse_stream(const std::string& name) {
  return parse("stream", name, {Stream::reference, Stream::direct});
}

Split parse_split(const std::string& name) {
  return parse("split", name, {Split::train, Split::valid, Split::test, Split::reference});
}

const char* to_string(Stream stream) {
  return stream == Stream::reference ? "reference" : "direct";
}

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
    case Split::reference:
      return "reference";
  }
  return "";
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
                        fmt::format("table of {} lengths times {} states, expected at most {} entries, got {}",
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
                    fmt::format("elements of a sample, expected 1 to {}, got {}", kMaxLength, config.length));
  }
  // Where fewer than half of the strings would be found within the reference's attempts, nothing is worth starting.
  const double needed = config.stream == Stream::reference ? std::log(2.0) / kMaxStringAttempts : 1e-200;
  if (const double fit = fit_probability(*automaton, config.length, needed); fit < needed) {
    throw bad_input(
        "sample.length",
        fit == 0
            ? fmt::format("no string of at most {} elements ('#' counted), expected a larger length", config.length)
            : fmt::format("a string has at most {} elements with probability {:.3g} only, expected at least {:.3g} "
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
double Sampler::reach(int k, int s) const {
  return impl_->reach().at(k, s);
}

void Sampler::sample(Split split, uint64_t index, uint16_t* states) const {
  check_split(impl_->config, split);
  impl_->run(split, index, 1, states);
}

SampleBlock Sampler::block(Split split, uint64_t first, size_t count, int threads) const {
  check_split(impl_->config, split);
  const auto length = static_cast<size_t>(impl_->config.length);
  SampleBlock out;
  out.first = first;
  out.length = impl_->config.length;
  out.states.resize(count * length);
  parallel_for(count, kGrain, threads, [&](size_t begin, size_t end) {
    impl_->run(split, first + begin, end - begin, out.states.data() + begin * length);
  });
  return out;
}

}  // namespace sb
