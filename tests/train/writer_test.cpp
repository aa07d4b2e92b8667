#include "train/writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "../base/faulty_file_system.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "small_run.h"

namespace sb {
namespace {

TEST(Writer, InBackgroundWritesInOrderAndReportsCompletion) {
  std::promise<void> go;
  const std::shared_future<void> going = go.get_future().share();
  std::vector<int> written;
  Writer writer(true);
  EXPECT_FALSE(writer.busy());
  for (int i = 0; i < 5; ++i) {
    writer.run([&written, going, i] {
      going.wait();
      written.push_back(i);
    });
  }
  EXPECT_TRUE(writer.busy());
  go.set_value();
  writer.wait();
  EXPECT_FALSE(writer.busy());
  EXPECT_EQ(written, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(Writer, SynchronousWriterThrowsAtOnce) {
  Writer writer(false);
  EXPECT_THROW(writer.run([] { throw cannot_write("run", "full"); }), Error);
  int written = 0;
  writer.run([&] { ++written; });
  EXPECT_EQ(written, 1);
  writer.wait();
}

TEST(Writer, FailureIsThrownOnceAndCancelsLaterWrites) {
  std::promise<void> go;
  const std::shared_future<void> going = go.get_future().share();
  std::atomic<int> written = 0;
  Writer writer(true);
  writer.run([going] {
    going.wait();
    throw cannot_write("run", "full");
  });
  writer.run([&] { ++written; });
  go.set_value();
  EXPECT_THROW(writer.wait(), Error);
  EXPECT_EQ(written, 0);
  writer.run([&] { ++written; });
  writer.wait();
  EXPECT_EQ(written, 1);
}

TEST(Writer, DestructorWaitsForAllWrites) {
  std::atomic<int> written = 0;
  {
    Writer writer(true);
    for (int i = 0; i < 3; ++i) {
      writer.run([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ++written;
      });
    }
  }
  EXPECT_EQ(written, 3);
}

// The CPU's updates with files written asynchronously, as with a GPU.
class BesideHost final : public Executor {
 public:
  explicit BesideHost(Trainer& trainer) : inner_(trainer) {}
  StepHandle step(const TensorBatch& batch, int64_t update) override { return inner_.step(batch, update); }
  size_t max_in_flight() const override { return 3; }
  bool is_asynchronous() const override { return true; }

 private:
  CpuExecutor inner_;
};

RunStatus work_asynchronously(const ResolvedConfig& config, const std::string& root, const TrainHooks& hooks = {},
                              FileSystem& files = real_file_system()) {
  PreparedRun run(config);
  run.executor = std::make_unique<BesideHost>(run.trainer);
  RunStore store(root, config, files);
  return train(run, store, hooks);
}

TEST(WriterInRun, BackgroundWritesGiveSameBytes) {
  for (const char* every : {"run.checkpoint_every=0", "run.checkpoint_every=2"}) {
    const ResolvedConfig config = test::small_config({every, "eval.gaps=[2]"});
    const test::TemporaryFolder plain, asynchronous, stopped;
    ASSERT_EQ(test::work(config, plain.path()), RunStatus::done);
    ASSERT_EQ(work_asynchronously(config, asynchronous.path()), RunStatus::done);
    EXPECT_EQ(test::lasting_bytes(plain.path(), config), test::lasting_bytes(asynchronous.path(), config));
    // The last checkpoint is never left out.
    const std::string last = checkpoint_name(12);
    EXPECT_EQ(Safetensors::parse(test::content(plain.path(), config, last), last).tensors().size(),
              Safetensors::parse(test::content(asynchronous.path(), config, last), last).tensors().size());
    int stops = 0;
    for (;; ++stops) {
      ASSERT_LT(stops, 100);
      int left = 3 + stops;
      TrainHooks hooks;
      int64_t done = 0;
      hooks.stop = [&left] { return --left < 0; };
      hooks.progress = [&done](const TrainProgress& p) { done = p.update; };
      if (work_asynchronously(config, stopped.path(), hooks) != RunStatus::stopped) break;
      const auto stored = list_checkpoints(stopped.path() + "/" + config.run_id);  // nothing is lost at a stop
      ASSERT_FALSE(stored.empty());
      EXPECT_EQ(stored[0].update, done);
    }
    EXPECT_GT(stops, 2);
    EXPECT_EQ(test::lasting_bytes(plain.path(), config), test::lasting_bytes(stopped.path(), config));
  }
}

TEST(WriterInRun, EveryFailedWriteIsReportedAndLeavesLoadableState) {
  const ResolvedConfig config =
      test::small_config({"train.updates=5", "eval.every=2", "model.layers=1", "model.width=8", "model.heads=1"});
  const test::TemporaryFolder clean;
  test::work(config, clean.path());
  for (int n = 0;; n += 3) {
    const test::TemporaryFolder root;
    test::FaultyFileSystem files(n);
    bool failed = false;
    try {
      work_asynchronously(config, root.path(), {}, files);
    } catch (const Error& error) {
      failed = true;
      EXPECT_EQ(error.code(), Exit::cannot_write) << error.what();
    }
    if (!files.failed()) break;
    if (failed) {
      EXPECT_EQ(work_asynchronously(config, root.path()), RunStatus::done);
    }
    EXPECT_EQ(test::lasting_bytes(clean.path(), config), test::lasting_bytes(root.path(), config)) << "operation " << n;
  }
}

}  // namespace
}  // namespace sb
