#include "train/loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../base/expect.h"
#include "base/error.h"
#include "config/data.h"

namespace sb {
namespace {

constexpr int kBatch = 4;

// Samples of different lengths: task 2 has gaps of random length.
RunData small_data(const TaskSchedule& schedule = {}) {
  RunConfig config;
  config.grammar.build.vocab = 6;
  config.grammar.build.ambiguities = 2;
  config.grammar.build.depth = 3;
  config.grammar.build.density = 0.4 / 3;
  config.task.task = paper_task(2);
  config.task.length = 20;
  config.train.updates = 40;
  config.train.schedule = schedule;
  return make_data(config);
}

Batch made(const RunData& data, const SampleOrder& order, int64_t update, int pad_to = 0) {
  Batch out;
  data.task->fill(Split::train, samples_of_update(order, kBatch, update), out, pad_to);
  return out;
}

void expect_same(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.frames, b.frames);
  EXPECT_EQ(a.samples, b.samples);
  EXPECT_EQ(a.symbol, b.symbol);
  EXPECT_EQ(a.gap, b.gap);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.element, b.element);
  EXPECT_EQ(a.start, b.start);
  EXPECT_EQ(a.state, b.state);
}

void pause(int64_t milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Loader, GivesSameBatchesAtAnyRelativeSpeed) {
  const RunData data = small_data();
  const SampleOrder order{5, 25 * kBatch};
  for (const bool slow : {false, true}) {  // the worker waits for the trainer, or the other way round
    Loader loader(data, Split::train, kBatch, 3, 25, order);
    for (int64_t update = 3; update < 25; ++update) {
      if (slow) pause(update % 4);
      expect_same(loader.next(), made(data, order, update));
    }
  }
}

TEST(Loader, FollowsTheScheduleFromAnyUpdate) {
  const RunData data = small_data({{"gap_max", 2, 0.5}});
  ASSERT_GT(data.stages.size(), 3U);
  for (const int64_t first : {0, 7, 30}) {
    Loader loader(data, Split::train, kBatch, first, 40);
    for (int64_t update = first; update < 40; ++update) {
      Batch expected;
      data.train_task(update)->fill(Split::train, samples_of_update({}, kBatch, update), expected);
      expect_same(loader.next(), expected);
    }
  }
  Batch early, late;
  data.train_task(0)->fill(Split::train, 0, 4, early);
  data.train_task(39)->fill(Split::train, 0, 4, late);
  EXPECT_EQ(early.state, late.state);
  EXPECT_LE(early.frames, 20 * 3);
  EXPECT_GT(late.frames, 20 * 3);
}

TEST(Loader, StartsAtAnyUpdate) {
  const RunData data = small_data();
  for (const int64_t first : {0, 7, 24}) {
    Loader loader(data, Split::train, kBatch, first, 25);
    const Batch batch = loader.next();
    EXPECT_EQ(batch.samples.front(), static_cast<uint64_t>(first * kBatch));
    expect_same(batch, made(data, {}, first));
  }
}

// Counts the calls of fill(), which wait while `blocked`.
class CountingTask final : public Task {
 public:
  mutable std::atomic<int> begun = 0, ended = 0;
  std::atomic<bool> blocked = false;

  TaskShape shape() const override { return {.channels = 2, .answers = 2, .elements = 1, .fixed_frames = true}; }
  std::string canonical_text() const override { return "counting\n"; }
  int max_frames(Split) const override { return 1; }
  double mean_frames(Split) const override { return 1; }
  using Task::fill;
  void fill(Split split, std::span<const uint64_t> samples, Batch& out, int pad_to) const override {
    ++begun;
    begun.notify_all();
    blocked.wait(true);
    begin_plain_batch(shape(), split, samples, pad_to, out);
    ++ended;
  }
  void await(int fills) const {
    for (int now = begun; now < fills; now = begun) begun.wait(now);
  }
};

TEST(Loader, MakesNothingMoreWhileTheQueueIsFullAndStops) {
  constexpr int kFull = static_cast<int>(Loader::kAhead) + 1;  // one that waits for a place
  for (const int taken : {0, 1, 5}) {
    const auto task = std::make_shared<CountingTask>();
    {
      Loader loader({.task = task}, Split::train, kBatch, 0, 1'000'000);
      for (int i = 0; i < taken; ++i) loader.next();
      task->await(taken + kFull);
    }
    EXPECT_EQ(task->begun, taken + kFull);
    EXPECT_EQ(task->ended, taken + kFull);
  }
}

TEST(Loader, StopWaitsForTheBatchInTheMaking) {
  const auto task = std::make_shared<CountingTask>();
  task->blocked = true;
  auto loader = std::make_unique<Loader>(RunData{.task = task}, Split::train, kBatch, 0, 1'000'000);
  task->await(1);
  std::thread stopping([&] { loader.reset(); });
  EXPECT_EQ(task->begun, 1);
  task->blocked = false;
  task->blocked.notify_all();
  stopping.join();
  EXPECT_EQ(task->ended, task->begun) << "a batch was still in the making";
}

TEST(Loader, ThrowsAfterLastBatch) {
  const RunData data = small_data();
  Loader loader(data, Split::train, kBatch, 0, 2);
  loader.next();
  loader.next();
  for (int i = 0; i < 2; ++i) EXPECT_THROW(loader.next(), Error);
  Loader none(data, Split::train, kBatch, 2, 2);
  EXPECT_THROW(none.next(), Error);
}

TEST(Loader, RethrowsWorkerErrorAfterEarlierBatches) {
  const RunData data = small_data();
  // As long as the batches before the first that is longer than all of them.
  int room = made(data, {}, 0).frames;
  int64_t broken = 1;
  for (; broken < 1000; ++broken) {
    const int frames = made(data, {}, broken).frames;
    if (broken >= 2 && frames > room) break;
    room = std::max(room, frames);
  }
  ASSERT_LT(broken, 1000);
  Loader loader(data, Split::train, kBatch, 0, 1000, {}, room);
  for (int64_t update = 0; update < broken; ++update) EXPECT_EQ(loader.next().frames, room);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(has(error_line([&] { loader.next(); }), "pad_to"));
  }
}

TEST(RowsOf, EqualsBatchOfSamplesWithSamePadding) {
  const RunData data = small_data();
  const Batch whole = made(data, {}, 2);
  int64_t asked = 0;
  bool shorter = false;
  for (const auto& [first, last] : {std::pair(0, 1), std::pair(1, 3), std::pair(3, kBatch)}) {
    const Batch rows = rows_of(whole, first, last);
    const std::vector<uint64_t> samples(whole.samples.begin() + first, whole.samples.begin() + last);
    Batch alone;
    data.task->fill(Split::train, samples, alone);
    shorter = shorter || alone.frames < whole.frames;
    data.task->fill(Split::train, samples, alone, whole.frames);
    expect_same(rows, alone);
    EXPECT_EQ(rows.batch, last - first);
    const at::Tensor dense = dense_frames(rows, 0, rows.frames, at::kFloat);
    EXPECT_TRUE(dense.equal(dense_frames(whole, 0, whole.frames, at::kFloat).narrow(0, first, last - first)));
    asked += asked_frames(rows, *data.task);
  }
  EXPECT_TRUE(shorter);  // else padding was not tested
  EXPECT_EQ(asked, asked_frames(whole, *data.task));
  EXPECT_EQ(asked, to_tensors(whole, *data.task, at::kFloat).real_frames);
}

TEST(Loader, PadsToRequestedLength) {
  const RunData data = small_data();
  const int room = data.task->max_frames(Split::train) + 3;
  Loader loader(data, Split::train, kBatch, 0, 5, {}, room);
  for (int64_t update = 0; update < 5; ++update) {
    const Batch padded = loader.next(), plain = made(data, {}, update);
    ASSERT_EQ(padded.frames, room);
    EXPECT_EQ(padded.start, plain.start);
    EXPECT_EQ(padded.state, plain.state);
    for (int b = 0; b < kBatch; ++b) {
      for (int t = 0; t < room; ++t) {
        const size_t at = static_cast<size_t>(b) * static_cast<size_t>(room) + static_cast<size_t>(t);
        if (t < plain.frames) {
          const size_t there = static_cast<size_t>(b) * static_cast<size_t>(plain.frames) + static_cast<size_t>(t);
          EXPECT_EQ(padded.symbol[at], plain.symbol[there]);
          EXPECT_EQ(padded.target[at], plain.target[there]);
        } else {
          EXPECT_EQ(padded.symbol[at], kPaddingFrame);
          EXPECT_EQ(padded.target[at], -1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sb
