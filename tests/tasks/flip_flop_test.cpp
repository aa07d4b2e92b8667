// Flip-flop against enumeration of all instructions and bits.
#include <gtest/gtest.h>

#include <cmath>

#include "../base/expect.h"
#include "base/error.h"
#include "kind_example.h"
#include "tasks/ceiling.h"

namespace sb {
namespace {

using test::example;
using Frames = std::vector<int16_t>;

constexpr int16_t kWrite = 0, kRead = 1, kIgnore = 2, kBit = 3;

// Adds the probability of every sample of `pairs` instructions that begins with `frames`, to all of its prefixes.
void enumerate(int pairs, double ignored, const Frames& frames, int written, double probability,
               std::map<Frames, double>& prefixes) {
  prefixes[frames] += probability;
  const int pair = static_cast<int>(frames.size() / 2);
  if (pair == pairs) return;
  for (const int16_t instruction : {kWrite, kRead, kIgnore}) {
    double p = instruction == kIgnore ? ignored : (1 - ignored) / 2;
    if (pair == 0) p = instruction == kWrite ? 1 : 0;
    if (pair == pairs - 1) p = instruction == kRead ? 1 : 0;
    if (p == 0) continue;
    Frames now = frames;
    now.push_back(instruction);
    prefixes[now] += probability * p;
    for (const int drawn : {0, 1}) {
      const double q = instruction != kRead ? 0.5 : drawn == written ? 1 : 0;
      if (q == 0) continue;
      Frames next = now;
      next.push_back(static_cast<int16_t>(kBit + drawn));
      enumerate(pairs, ignored, next, instruction == kWrite ? drawn : written, probability * p * q, prefixes);
    }
  }
}

TEST(FlipFlop, ItsOracleEqualsEnumeration) {
  std::map<Frames, double> prefixes;
  enumerate(5, 0.4, {}, -1, 1, prefixes);
  const auto task = example("flip_flop", 5);
  const std::unique_ptr<Oracle> oracle = task->oracle(Split::test);
  int reads = 0;
  for (const auto& [frames, probability] : prefixes) {
    if (frames.empty() || frames.back() != kRead) continue;
    ++reads;
    oracle->reset();
    for (const int16_t symbol : frames) oracle->frame(symbol);
    std::vector<double> found(2);
    oracle->posterior(found.data());
    for (const int b : {0, 1}) {
      Frames next = frames;
      next.push_back(static_cast<int16_t>(kBit + b));
      const auto at = prefixes.find(next);
      EXPECT_NEAR(found[static_cast<size_t>(b)], at == prefixes.end() ? 0 : at->second / probability, 1e-12);
    }
  }
  EXPECT_GT(reads, 100);
}

TEST(FlipFlop, SamplesHaveTheStatedDistribution) {
  std::map<Frames, double> prefixes, counts;
  enumerate(3, 0.4, {}, -1, 1, prefixes);
  const auto task = example("flip_flop", 3, {{"ignored", int64_t{40}}});
  constexpr int samples = 20000;
  Batch batch;
  task->fill(Split::test, 0, samples, batch);
  for (int b = 0; b < samples; ++b) counts[{batch.symbol.begin() + 6 * b, batch.symbol.begin() + 6 * (b + 1)}] += 1;
  for (const auto& [frames, probability] : prefixes) {
    if (frames.size() < 6) continue;
    EXPECT_NEAR(counts[frames], samples * probability, 4.5 * std::sqrt(samples * probability));
    counts.erase(frames);
  }
  EXPECT_TRUE(counts.empty()) << "no other samples";
}

TEST(FlipFlop, OnlyReadsAsk) {
  const auto task = example("flip_flop", 256);
  EXPECT_EQ(task->max_frames(Split::train), 512);
  for (const int percent : {80, 10, 98}) {
    const auto at = task->at(Split::test, percent);
    Batch batch, train, same;
    at->fill(Split::test, 0, 50, batch);
    at->fill(Split::train, 0, 5, train);
    task->fill(Split::train, 0, 5, same);
    EXPECT_EQ(train.symbol, same.symbol) << "only the test changes";
    int ignored = 0, reads = 0;
    for (size_t i = 0; i < batch.symbol.size(); i += 2) {
      ignored += batch.symbol[i] == kIgnore;
      reads += batch.symbol[i] == kRead;
      EXPECT_EQ(batch.target[i], batch.symbol[i] == kRead ? batch.symbol[i + 1] - kBit : -1);
      EXPECT_EQ(batch.target[i + 1], -1);
    }
    const double share = percent / 100.0;
    EXPECT_NEAR(ignored, 50 * 254 * share, 4 * std::sqrt(50 * 254 * share * (1 - share)));
    EXPECT_NEAR(reads, 50 * (254 * (1 - share) / 2 + 1), 4 * std::sqrt(50 * 254 * (1 - share) / 2));
    CeilingRequest request;
    request.samples = 20;
    EXPECT_DOUBLE_EQ(exact_ceiling(*at, request).accuracy, 1);
  }
}

TEST(FlipFlop, NeedsRoomToWriteAndRead) {
  EXPECT_EQ(error_line([] { example("flip_flop", 1); }),
            "[task.length] expected at least 2, to write and to read, got 1");
  EXPECT_EQ(example("flip_flop", 2)->shape().elements, 4);
}

}  // namespace
}  // namespace sb
