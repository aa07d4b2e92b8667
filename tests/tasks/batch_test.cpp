#include "tasks/gap_task.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/error.h"
#include "golden_json.h"
#include "random/mersenne.h"
#include "random/pcg64.h"
#include "random/philox.h"
#include "tasks/automata.h"

namespace sb {
namespace {

// Gaps as the reference draws them: places from the dataset's own generator, lengths and symbols from the legacy one.
Gaps reference_gaps(const nlohmann::json& recorded, const std::vector<std::vector<int32_t>>& forbidden, Pcg64& places,
                    uint32_t item_seed, const std::vector<uint16_t>& states) {
  NumpyLegacy legacy(item_seed);
  Gaps gaps;
  gaps.length.assign(states.size(), 0);
  const auto& duration = recorded["duration"];
  for (size_t e = recorded["gap_start"]; e < states.size(); ++e) {
    if (places.random() > recorded["gap_prob"].get<double>()) continue;
    double steps = 0;
    if (duration.is_array()) {
      const double low = duration[0];
      const double high = duration[1];
      steps = std::nearbyint(10 * (low + (high - low) * legacy.random()));
    } else {
      steps = std::nearbyint(10 * duration.get<double>());
    }
    gaps.length[e] = static_cast<int32_t>(steps);
    if (!recorded["nongramm"]) continue;
    const std::vector<int32_t>& classes = forbidden[states[e]];
    for (int32_t n = 0; n < gaps.length[e]; ++n) {
      gaps.wrong.push_back(classes[legacy.interval(static_cast<uint32_t>(classes.size() - 1))]);
    }
  }
  return gaps;
}

TEST(Batch, MatchesReferenceFramesLabelsAndSpans) {
  for (const auto& recorded : test::read_golden("grammar/input_cases.json.gz")) {
    SCOPED_TRACE(recorded["name"].get<std::string>());
    const auto& g = recorded["grammar"];
    const uint64_t seed = g[3];
    const int length = recorded["L"];
    const auto automaton = build_automaton({g[0], g[1], g[2], -1, 4, seed});
    const auto sampler = test::sampler(automaton, length, seed, Stream::reference);
    const auto forbidden = forbidden_classes(*sampler);
    const auto indices = recorded["idx"].get<std::vector<uint64_t>>();
    Pcg64 places{uint128{seed}};
    std::vector<Gaps> gaps;
    std::vector<uint16_t> all;
    for (const uint64_t index : indices) {
      std::vector<uint16_t> states(static_cast<size_t>(length));
      sampler->sample(Split::reference, index, states.data());
      gaps.push_back(reference_gaps(recorded, forbidden, places, static_cast<uint32_t>(seed * index), states));
      all.insert(all.end(), states.begin(), states.end());
    }
    Batch batch;
    assemble(*sampler, all.data(), length, gaps.data(), static_cast<int>(indices.size()), batch);

    EXPECT_EQ(batch.frames, recorded["batch"]["data_shape"][1]);
    for (size_t b = 0; b < indices.size(); ++b) {
      SCOPED_TRACE("sample " + std::to_string(indices[b]));
      const auto& sample = recorded["samples"][b];
      const auto frames = static_cast<size_t>(batch.real_frames(static_cast<int>(b)));
      ASSERT_EQ(frames, sample["tokens"].size());
      const auto at = static_cast<ptrdiff_t>(b) * batch.frames;
      const auto slice = [&](const auto& values) {
        return std::vector<int>(values.begin() + at, values.begin() + at + static_cast<ptrdiff_t>(frames));
      };
      EXPECT_EQ(slice(batch.symbol), sample["tokens"].get<std::vector<int>>());
      EXPECT_EQ(slice(batch.target), sample["labels"].get<std::vector<int>>());
      for (size_t e = 0; e < static_cast<size_t>(length); ++e) {
        const size_t cell = b * static_cast<size_t>(length + 1) + e;
        EXPECT_EQ(batch.start[cell], sample["element_start_len"][e][0]);
        EXPECT_EQ(batch.start[cell + 1] - batch.start[cell], sample["element_start_len"][e][1]);
      }
    }
  }
}

void expect_consistent(const Batch& batch) {
  for (int b = 0; b < batch.batch; ++b) {
    const size_t row = static_cast<size_t>(b) * batch.frames;
    const int32_t* start = batch.start.data() + static_cast<size_t>(b) * (batch.elements + 1);
    const int32_t* state = batch.state.data() + static_cast<size_t>(b) * batch.elements;
    for (int e = 0; e < batch.elements; ++e) {
      for (int t = start[e]; t < start[e + 1]; ++t) {
        ASSERT_EQ(batch.element[row + t], e);
        ASSERT_EQ(batch.target[row + t], state[e]);
        ASSERT_EQ(batch.gap[row + t], t > start[e] ? 1 : 0);
        ASSERT_NE(batch.symbol[row + t], kPaddingFrame);
      }
      ASSERT_GE(batch.symbol[row + start[e]], 0);
    }
    for (int t = batch.real_frames(b); t < batch.frames; ++t) {
      ASSERT_EQ(batch.symbol[row + t], kPaddingFrame);
      ASSERT_EQ(batch.target[row + t], -1);
      ASSERT_EQ(batch.element[row + t], -1);
      ASSERT_EQ(batch.gap[row + t], 0);
    }
  }
}

TEST(Batch, IsConsistentForEveryTaskInReusedBuffer) {
  const auto sampler = test::sampler(test::twins(), 83);
  Batch batch;
  for (int number : {2, 0, 3, 1, 4}) {
    const GapTask task(sampler, paper_task(number));
    for (const Split split : {Split::train, Split::test}) {
      task.fill(split, 10, 9, batch);
      expect_consistent(batch);
      EXPECT_LE(batch.frames, task.max_frames(split));
      EXPECT_EQ(batch.samples.front(), 10U);
      EXPECT_EQ(batch.samples.back(), 18U);
    }
  }
}

TEST(Batch, LaysOutGapsLongerThanVectorWrite) {
  const auto sampler = test::sampler(test::twins(), 20);
  TaskConfig task = paper_task(1);
  for (const int gap : {14, 15, 16, 17, 100}) {
    task.test.min = gap;
    Batch batch;
    GapTask(sampler, task).fill(Split::test, 0, 2, batch);
    EXPECT_EQ(batch.frames, 20 * (1 + gap));
    expect_consistent(batch);
  }
}

TEST(Batch, SampleIsTheSameInAnyBatch) {
  const auto sampler = test::sampler(test::forked(), 60);
  const GapTask task(sampler, paper_task(2));
  Batch wide, narrow, from_block;
  task.fill(Split::train, 100, 8, wide, 800);
  task.fill(Split::train, 105, 1, narrow, 800);
  const SampleBlock block = sampler->block(Split::train, 98, 12, 1);
  task.fill(Split::train, block, 2, 8, from_block, 800);
  EXPECT_EQ(from_block.symbol, wide.symbol);
  EXPECT_EQ(from_block.target, wide.target);
  EXPECT_EQ(from_block.samples, wide.samples);
  EXPECT_TRUE(std::equal(narrow.symbol.begin(), narrow.symbol.end(), wide.symbol.begin() + 5 * 800));
}

TEST(Batch, AcceptsAnySamplesInAnyOrder) {
  const GapTask task(test::sampler(test::forked(), 60), paper_task(2));
  const std::vector<uint64_t> indices = {7, 3, 7, uint64_t{1} << 40, 0};
  Batch mixed, alone;
  task.fill(Split::valid, indices, mixed, 800);
  expect_consistent(mixed);
  EXPECT_EQ(mixed.samples, indices);
  std::vector<float> dense(size_t{5} * 800 * 3), single(size_t{800} * 3);
  expand_frames(mixed, dense.data());
  for (size_t b = 0; b < indices.size(); ++b) {
    task.fill(Split::valid, indices[b], 1, alone, 800);
    EXPECT_TRUE(std::equal(alone.symbol.begin(), alone.symbol.end(), mixed.symbol.begin() + b * 800));
    EXPECT_TRUE(std::equal(alone.target.begin(), alone.target.end(), mixed.target.begin() + b * 800));
    expand_frames(alone, single.data());
    EXPECT_TRUE(std::equal(single.begin(), single.end(), dense.begin() + b * single.size()));
  }
}

TEST(Batch, PaddingOnlyAddsFrames) {
  const GapTask task(test::sampler(test::forked(), 20), paper_task(2));
  Batch tight, padded;
  task.fill(Split::train, 3, 4, tight);
  task.fill(Split::train, 3, 4, padded, tight.frames + 37);
  EXPECT_EQ(padded.frames, tight.frames + 37);
  expect_consistent(padded);
  EXPECT_EQ(padded.start, tight.start);
  EXPECT_EQ(padded.state, tight.state);
  std::vector<float> narrow(tight.symbol.size() * 3), wide(padded.symbol.size() * 3);
  expand_frames(tight, narrow.data());
  expand_frames(padded, wide.data());
  for (size_t b = 0; b < 4; ++b) {
    const size_t frames = static_cast<size_t>(tight.frames) * 3, more = static_cast<size_t>(padded.frames) * 3;
    EXPECT_TRUE(std::equal(narrow.begin() + b * frames, narrow.begin() + (b + 1) * frames, wide.begin() + b * more));
    EXPECT_TRUE(std::all_of(wide.begin() + b * more + frames, wide.begin() + (b + 1) * more,
                            [](float value) { return value == 0; }));
  }
}

TEST(Batch, RejectsInvalidRequests) {
  const auto sampler = test::sampler(test::twins(), 50);
  const GapTask task(sampler, paper_task(1));
  Batch batch;
  EXPECT_THROW(task.fill(Split::train, 0, 2, batch, 99), Error);
  EXPECT_THROW(task.fill(Split::train, sampler->block(Split::train, 0, 3, 1), 2, 2, batch), Error);
  TaskConfig huge = paper_task(1);
  huge.train.min = kMaxGap;
  EXPECT_THROW(GapTask(test::sampler(test::twins(), 30000), huge), Error);
}

TEST(ExpandFrames, RowsAreOneHotPlusDocumentedNoise) {
  const auto sampler = test::sampler(test::twins(), 30, 77);
  const GapTask task(sampler, paper_task(2));
  Batch batch;
  task.fill(Split::valid, 5, 3, batch, 340);
  const int vocab = 4;
  std::vector<float> rows(static_cast<size_t>(3) * 340 * vocab, std::numeric_limits<float>::quiet_NaN());
  expand_frames(batch, rows.data());
  for (uint64_t b = 0; b < 3; ++b) {
    const PhiloxStream noise(77, static_cast<uint32_t>(Split::valid), 5 + b, Purpose::noise);
    for (uint32_t t = 0; t < 340; ++t) {
      const int16_t symbol = batch.symbol[b * 340 + t];
      for (uint32_t c = 0; c < vocab; ++c) {
        const float added = symbol == kPaddingFrame ? 0.0F : 0.2F * unit_float(noise.word(t * vocab + c));
        const float hot = symbol == static_cast<int16_t>(c) ? 1.0F : 0.0F;
        ASSERT_EQ(rows[(b * 340 + t) * vocab + c], hot + added);
      }
    }
  }
  batch.noise = 0;
  expand_frames(batch, rows.data());
  EXPECT_EQ(std::accumulate(rows.begin(), rows.end(), 0.0), 3 * 30);
}

TEST(ExpandFrames, FrameRangesAreSlicesOfTheWhole) {
  const GapTask task(test::sampler(test::forked(), 30),
                     paper_task(2));  // three channels: stretches begin anywhere in a word block
  Batch batch;
  task.fill(Split::test, 5, 2, batch, 350);
  std::vector<float> whole(batch.symbol.size() * 3), part(whole.size());
  expand_frames(batch, whole.data());
  for (const int step : {1, 2, 3, 7, 11, 64, 349}) {
    for (int from = 0; from < batch.frames; from += step) {
      const int to = std::min(batch.frames, from + step);
      std::fill(part.begin(), part.end(), std::numeric_limits<float>::quiet_NaN());
      expand_row(batch, 1, from, to, part.data());
      const auto begin = whole.begin() + (batch.frames + from) * 3;
      ASSERT_TRUE(std::equal(begin, begin + (to - from) * 3, part.begin())) << from << " to " << to;
      ASSERT_TRUE(std::isnan(part[static_cast<size_t>(to - from) * 3])) << "nothing beyond the stretch";
    }
  }
}

TEST(NextSymbolLaw, FollowsGrammarAndRestartsAfterEnd) {
  const auto sampler = test::sampler(test::forked(), 6);
  std::vector<double> law(3);
  next_symbol_law(*sampler, 1, law.data());
  EXPECT_DOUBLE_EQ(law[0], 1.0 / 8);
  EXPECT_DOUBLE_EQ(law[1], 4.0 / 8);
  EXPECT_DOUBLE_EQ(law[2], 3.0 / 8);
  next_symbol_law(*sampler, sampler->end(), law.data());
  EXPECT_EQ(law, (std::vector<double>{0, 0.5, 0.5}));
}

TEST(GapTask, AnswersAreStatesOrNextClasses) {
  const auto sampler = test::sampler(test::forked(), 12);
  TaskConfig config = paper_task(2);
  Batch batch;
  for (const Objective objective : {Objective::state, Objective::predict}) {
    config.objective = objective;
    const GapTask task(sampler, config);
    task.fill(Split::train, 4, 3, batch, 150);
    EXPECT_EQ(task.shape().answers, objective == Objective::state ? 5 : 3);
    std::vector<int64_t> targets(batch.symbol.size());
    task.targets(batch, targets.data());
    for (int b = 0; b < 3; ++b) {
      for (int t = 0; t < batch.frames; ++t) {
        const size_t at = static_cast<size_t>(b) * batch.frames + t;
        const int32_t e = batch.element[at];
        int64_t right = -1;
        if (e >= 0 && objective == Objective::state) right = batch.target[at];
        if (e >= 0 && objective == Objective::predict && e + 1 < 12) {
          right = batch.symbol[static_cast<size_t>(b) * batch.frames + batch.starts(b)[e + 1]];
        }
        ASSERT_EQ(targets[at], right) << "row " << b << ", frame " << t;
      }
    }
  }
}

TEST(GapTask, CanonicalTextsAreEqualIfAndOnlyIfSamplesAre) {
  const auto text = [](const auto& automaton, int length, uint64_t seed, const TaskConfig& config) {
    return GapTask(test::sampler(automaton, length, seed), config).canonical_text();
  };
  const TaskConfig base = paper_task(2);
  const std::string own = text(test::twins(), 20, 1, base);
  EXPECT_EQ(text(test::twins(), 20, 1, base), own);
  TaskConfig unread = base;
  unread.number = 0;
  unread.test.max = 77;  // of a constant law
  unread.test.mu = 3;
  EXPECT_EQ(text(test::twins(), 20, 1, unread), own);
  EXPECT_NE(text(test::forked(), 20, 1, base), own);
  EXPECT_NE(text(test::twins(), 21, 1, base), own);
  EXPECT_NE(text(test::twins(), 20, 2, base), own);
  std::set<std::string> seen{own};
  const auto change = [&](const auto& apply) {
    TaskConfig other = base;
    apply(other);
    EXPECT_TRUE(seen.insert(text(test::twins(), 20, 1, other)).second);
  };
  change([](TaskConfig& c) { c.objective = Objective::predict; });
  change([](TaskConfig& c) { c.noise = 0.1; });
  change([](TaskConfig& c) { c.train.max = 9; });
  change([](TaskConfig& c) { c.train.law = GapLaw::lognormal; });
  change([](TaskConfig& c) { c.train.probability = 0.5; });
  change([](TaskConfig& c) { c.test.start = 3; });
  change([](TaskConfig& c) { c.test.content = GapContent::forbidden_symbol; });
  change([](TaskConfig& c) { c.test.law = GapLaw::none; });
}

}  // namespace
}  // namespace sb
