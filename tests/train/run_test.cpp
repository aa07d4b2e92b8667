#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "../base/expect.h"
#include "../base/faulty_file_system.h"
#include "../base/temporary_folder.h"
#include "base/error.h"
#include "small_run.h"
#include "store/run_check.h"

namespace sb {
namespace {

using test::FaultyFileSystem;
using test::lasting_bytes;
using test::small_config;
using test::TemporaryFolder;
using test::work;

TrainHooks stop_after(int polls) {
  auto left = std::make_shared<int>(polls);
  TrainHooks hooks;
  hooks.stop = [left] { return --*left < 0; };
  return hooks;
}

TEST(Run, StoppedRunResumesToSameBytes) {
  for (const auto& model : test::paper_models()) {
    const ResolvedConfig config = small_config({"model.name=" + model, "eval.gaps=[2, 5]"});
    const TemporaryFolder clean, broken;
    ASSERT_EQ(work(config, clean.path()), RunStatus::done);
    int stops = 0;
    while (work(config, broken.path(), stop_after(3 + stops)) == RunStatus::stopped) ASSERT_LT(++stops, 100);
    EXPECT_GT(stops, 2) << model;
    EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(broken.path(), config)) << model;
  }
}

TEST(Run, HasTheSameBytesForAnyThreadCount) {
  for (const auto& model : test::paper_models()) {
    const ResolvedConfig config = small_config({"model.name=" + model, "task.number=2"});
    std::vector<std::vector<std::string>> results;
    for (const int threads : {1, 2}) {
      const TemporaryFolder root;
      at::set_num_threads(threads);
      ASSERT_EQ(work(config, root.path()), RunStatus::done);
      results.push_back(lasting_bytes(root.path(), config));
    }
    at::set_num_threads(2);
    EXPECT_EQ(results[0], results[1]) << model;
  }
}

TEST(Run, ResultHasDocumentedFields) {
  const ResolvedConfig config = small_config({"eval.gaps=[3]", "task.number=2", "run.label=a", "run.seed=5"});
  const TemporaryFolder root;
  work(config, root.path());
  const std::string folder = root.path() + "/" + config.run_id;
  const Result result = load_result(folder);
  EXPECT_EQ(result.status, "done");
  EXPECT_EQ(result.run_id, config.run_id);
  EXPECT_EQ(result.model, "gated_delta_net");
  EXPECT_EQ(result.label, "a");
  EXPECT_EQ(result.run_seed, 5U);
  EXPECT_EQ(result.train_seed, 5U);
  EXPECT_EQ(result.updates, 12);
  EXPECT_EQ(result.samples_seen, 48);
  EXPECT_EQ(result.config, config_map(config.canonical));
  EXPECT_EQ(result.config.at("model.width"), "16");
  EXPECT_GT(result.params, 0);
  EXPECT_GT(result.state_size.value_or(0), 0);
  EXPECT_GT(result.topological_entropy.value_or(0), 0);
  ASSERT_TRUE(result.test && result.test->ceiling && result.valid);
  EXPECT_EQ(result.test->split, "test");
  EXPECT_EQ(result.valid->split, "valid");
  EXPECT_EQ(result.test->samples, 12);
  EXPECT_TRUE(result.test->ceiling->exact);
  EXPECT_GE(result.test->ceiling->upper_bound, result.test->ceiling->accuracy - 1e-12);
  EXPECT_FALSE(result.test->confusion.empty());
  EXPECT_FALSE(result.test->by_entropy.empty());
  ASSERT_EQ(result.grid.size(), 1U);
  EXPECT_EQ(result.grid[0].at, 3);
  EXPECT_TRUE(result.grid[0].ceiling);
  const Safetensors weights = load_sealed_safetensors(folder + "/final.safetensors");
  EXPECT_NE(weights.find("encoder.weight"), nullptr);
  EXPECT_EQ(weights.find("adam.first.encoder.weight"), nullptr);
  EXPECT_TRUE(verify_run(folder).empty());
}

TEST(Run, ResultHasProvenance) {
  const ResolvedConfig config = small_config();
  const TemporaryFolder root;
  work(config, root.path());
  const Result result = load_result(root.path() + "/" + config.run_id);
  ASSERT_TRUE(result.made);
  const Provenance& made = *result.made;
  for (const auto* text :
       {&made.version, &made.commit, &made.compiler, &made.libtorch, &made.blas, &made.instructions, &made.host}) {
    EXPECT_FALSE(text->empty());
  }
  EXPECT_EQ(made.device, "cpu");
  EXPECT_EQ(made.threads, at::get_num_threads());
  EXPECT_GT(made.train_seconds, 0);
  EXPECT_GT(made.total_seconds, made.train_seconds);
  EXPECT_GT(made.tokens_per_second, 0);
  EXPECT_EQ(made.finished.size(), 20U);
}

TEST(Run, TimesIncludeAllProcessesOfRun) {
  const ResolvedConfig config = small_config();
  const TemporaryFolder root;
  ASSERT_EQ(work(config, root.path(), stop_after(6)), RunStatus::stopped);
  const auto before = list_checkpoints(root.path() + "/" + config.run_id);
  ASSERT_FALSE(before.empty());
  const auto file = load_sealed_safetensors(before[0].path);
  const double spent = std::stod(file.metadata().at("spent_train_seconds"));
  const double total = std::stod(file.metadata().at("spent_total_seconds"));
  EXPECT_GT(spent, 0);
  ASSERT_EQ(work(config, root.path()), RunStatus::done);
  const Result result = load_result(root.path() + "/" + config.run_id);
  EXPECT_GT(result.made->train_seconds, spent);
  EXPECT_GT(result.made->total_seconds, total);
  const auto weights = load_sealed_safetensors(root.path() + "/" + config.run_id + "/final.safetensors");
  EXPECT_FALSE(weights.metadata().contains("spent_frames"));
}

// Documented as "no ceiling". Regression: the run failed after training.
TEST(Run, ZeroCeilingSamplesMeansNoCeiling) {
  const ResolvedConfig config = small_config({"eval.ceiling_samples=0", "eval.gaps=[2]"});
  const TemporaryFolder root;
  ASSERT_EQ(work(config, root.path()), RunStatus::done);
  const Result result = load_result(root.path() + "/" + config.run_id);
  EXPECT_FALSE(result.test->ceiling);
  EXPECT_FALSE(result.grid.at(0).ceiling);
}

TEST(Run, NoTrainedModelBeatsTheCeiling) {
  const ResolvedConfig config =
      small_config({"train.updates=150", "train.lr=1e-2", "model.width=32", "eval.test_samples=100",
                    "eval.ceiling_samples=100", "eval.every=0", "train.batch=16"});
  const TemporaryFolder root;
  work(config, root.path());
  const Result result = load_result(root.path() + "/" + config.run_id);
  const CeilingFigure ceiling = result.test->ceiling.value();
  EXPECT_LE(result.test->accuracy, ceiling.accuracy + 4 * std::hypot(result.test->stderr_, ceiling.stderr_));
  EXPECT_GT(result.test->accuracy, 5 * result.chance);
}

TEST(Run, DivergenceNamesUpdateLayerAndTensor) {
  ResolvedConfig config = small_config({"train.clip=0", "train.warmup=0"});
  test::diverge(config);
  const TemporaryFolder root;
  ASSERT_EQ(work(config, root.path()), RunStatus::diverged);
  const Result result = load_result(root.path() + "/" + config.run_id);
  EXPECT_EQ(result.status, "diverged");
  ASSERT_TRUE(result.divergence);
  EXPECT_GE(result.divergence->update, 1);
  EXPECT_FALSE(result.divergence->tensor.empty());
  EXPECT_FALSE(result.test);
  EXPECT_TRUE(result.made);
}

// Only the update after the last would show it, and there is none.
TEST(Run, DetectsDivergenceOfLastUpdate) {
  ResolvedConfig config = small_config({"train.clip=0", "train.warmup=0", "train.updates=1"});
  test::diverge(config);
  const TemporaryFolder root;
  ASSERT_EQ(work(config, root.path()), RunStatus::diverged);
  const Result result = load_result(root.path() + "/" + config.run_id);
  ASSERT_TRUE(result.divergence);
  EXPECT_EQ(result.divergence->update, 1);
  EXPECT_FALSE(result.divergence->tensor.empty());
  EXPECT_FALSE(result.test);
}

// Works on the run with weights that are no numbers from the n-th of this phase until the next phase begins.
RunStatus broken_during(const ResolvedConfig& config, const std::string& root, const std::string& phase, int n,
                        std::vector<std::string>& warnings) {
  PreparedRun run(config);
  RunStore store(root, config);
  at::Tensor flat = run.trainer.network().parameters().flat(), kept;
  TrainHooks hooks;
  hooks.warning = [&](const std::string& line) { warnings.push_back(line); };
  hooks.progress = [&](const TrainProgress& p) {
    const at::NoGradGuard no_gradients;
    if (kept.defined()) {
      flat.copy_(kept);
      kept = at::Tensor();
    }
    if (p.phase != phase || --n != 0) return;
    kept = flat.clone();
    flat.fill_(std::nan(""));
  };
  return train(run, store, hooks);
}

TEST(Run, OmitsNonFiniteTestAndKeepsOtherResults) {
  const ResolvedConfig config = small_config({"eval.gaps=[2, 5]"});
  const TemporaryFolder clean, test_broken, grid_broken;
  work(config, clean.path());
  const Result whole = load_result(clean.path() + "/" + config.run_id);
  std::vector<std::string> warnings;
  ASSERT_EQ(broken_during(config, test_broken.path(), "test", 1, warnings), RunStatus::done);
  Result result = load_result(test_broken.path() + "/" + config.run_id);
  EXPECT_EQ(result.status, "done");
  EXPECT_FALSE(result.test);
  EXPECT_FALSE(result.divergence);
  ASSERT_EQ(result.grid.size(), 2U);
  EXPECT_EQ(result.grid[0].accuracy, whole.grid[0].accuracy);
  EXPECT_EQ(result.valid->accuracy, whole.valid->accuracy);
  EXPECT_EQ(result.files.at("final.safetensors"), whole.files.at("final.safetensors"));
  EXPECT_TRUE(verify_run(test_broken.path() + "/" + config.run_id).empty());
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(has(warnings[0], "test sample 0, frame 0", "the result has no accuracy of test"));

  warnings.clear();
  ASSERT_EQ(broken_during(config, grid_broken.path(), "grid", 2, warnings), RunStatus::done);
  result = load_result(grid_broken.path() + "/" + config.run_id);
  ASSERT_TRUE(result.test);
  EXPECT_EQ(result.test->accuracy, whole.test->accuracy);
  ASSERT_EQ(result.grid.size(), 1U) << "missing, not zero";
  EXPECT_EQ(result.grid[0].at, 2);
  EXPECT_EQ(result.files.at("final.safetensors"), whole.files.at("final.safetensors"));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(has(warnings[0], "gap 5"));
}

TEST(Run, NonFiniteValidIsDivergence) {
  const ResolvedConfig config = small_config();
  const TemporaryFolder root;
  std::vector<std::string> warnings;
  ASSERT_EQ(broken_during(config, root.path(), "valid", 2, warnings), RunStatus::diverged);
  EXPECT_EQ(load_result(root.path() + "/" + config.run_id).divergence->update, 8);
}

// A bias that overflows only with dropout's scale factor.
TEST(Trainer, LocatesNonFiniteEvaluationWithoutDropout) {
  PreparedRun run(small_config({"model.dropout=0.5", "model.mlp=1"}));
  Batch frames;
  run.data.task->fill(Split::test, 0, 1, frames);
  const TensorBatch batch = to_tensors(std::move(frames), *run.data.task, at::kFloat);
  const Parameter* bias = run.trainer.network().parameters().find("layers.1.mlp.linear2.bias");
  ASSERT_NE(bias, nullptr);
  const at::NoGradGuard no_gradients;
  run.trainer.network().parameters().flat().narrow(0, bias->offset, 1).fill_(2e38);
  const auto found = [&](Trainer::Forward kind) {
    return run.trainer.locate_forward(batch.input, batch.samples, 0, kind);
  };
  EXPECT_EQ(found(Trainer::Forward::update).layer, 1);
  EXPECT_EQ(found(Trainer::Forward::evaluation).tensor, "");
}

// The memory is full `times` times from the n-th time on that an evaluation of this phase asks whether to stop.
TrainHooks full_during(const std::string& phase, int n, int times = 1 << 20) {
  auto acts = std::make_shared<bool>(false);
  auto asked = std::make_shared<int>(0);
  TrainHooks hooks;
  hooks.progress = [acts, phase](const TrainProgress& p) { *acts = p.phase == phase; };
  hooks.stop = [acts, asked, n, times] {
    if (*acts && ++*asked >= n && *asked < n + times) {
      throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "full");
    }
    return false;
  };
  return hooks;
}

TEST(Run, EvaluationOutOfMemoryKeepsEarlierUpdates) {
  const ResolvedConfig config = small_config();  // an evaluation on valid asks four times
  const TemporaryFolder clean, full, once;
  work(config, clean.path());
  struct Case {
    const char* phase;
    int n;
    int64_t updates;
  };
  for (const Case& each : {Case{"valid", 1, 4}, {"valid", 6, 8}, {"valid", 3, 8}, {"test", 2, 12}}) {
    const std::string line = error_line([&] { work(config, full.path(), full_during(each.phase, each.n)); });
    EXPECT_TRUE(line.starts_with("[eval.batch] ")) << line;
    EXPECT_TRUE(has(line, "after update " + std::to_string(each.updates) + ")"));
    const auto stored = list_checkpoints(full.path() + "/" + config.run_id);
    ASSERT_FALSE(stored.empty());
    EXPECT_EQ(stored[0].update, each.updates);
  }
  EXPECT_EQ(work(config, full.path()), RunStatus::done);
  EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(full.path(), config));
  // Where giving back the steps' memory helps, nothing is told.
  EXPECT_EQ(work(config, once.path(), full_during("valid", 2, 1)), RunStatus::done);
  EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(once.path(), config));
}

TEST(Run, SavesEachUpdateOnce) {
  for (const char* every : {"run.checkpoint_every=0", "run.checkpoint_every=2"}) {
    const TemporaryFolder root;
    int saved = 0;
    TrainHooks hooks;
    hooks.saving = [&](bool begins) { saved += begins; };
    ASSERT_EQ(work(small_config({every}), root.path(), hooks), RunStatus::done);
    EXPECT_EQ(saved, std::string(every).back() == '0' ? 3 : 6) << every;
  }
}

TEST(Run, QuirksWithoutEffectChangeNothing) {
  const std::vector<std::string> plain = {"model.name=gla", "train.warmup=0", "eval.every=0"};
  std::vector<std::string> idle = plain;
  for (const char* each :
       {"quirks.delta_bf16=true", "quirks.sum_accumulated=true", "quirks.first_lr_zero=true", "eval.grid_samples=3"})
    idle.emplace_back(each);
  const TemporaryFolder a, b;
  const ResolvedConfig one = small_config(plain), other = small_config(idle);
  work(one, a.path());
  work(other, b.path());
  EXPECT_EQ(test::content(a.path(), one, "metrics.jsonl"), test::content(b.path(), other, "metrics.jsonl"));
  const Result result = load_result(b.path() + "/" + other.run_id);
  EXPECT_TRUE(result.quirks.empty());
  EXPECT_EQ(result.test->accuracy, load_result(a.path() + "/" + one.run_id).test->accuracy);
}

TEST(Run, NamesDamagedCheckpointAndUsesPreviousOne) {
  const ResolvedConfig config = small_config();
  const TemporaryFolder clean, broken;
  work(config, clean.path());
  work(config, broken.path(), stop_after(11));
  const auto stored = list_checkpoints(broken.path() + "/" + config.run_id);
  ASSERT_EQ(stored.size(), 2U);
  std::fstream file(stored[0].path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-9, std::ios::end);
  file.put('\x5a');
  file.close();
  std::vector<std::string> warnings;
  TrainHooks hooks;
  hooks.warning = [&](const std::string& line) { warnings.push_back(line); };
  EXPECT_EQ(work(config, broken.path(), hooks), RunStatus::done);
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_TRUE(has(warnings[0], stored[0].path));
  EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(broken.path(), config));
}

TEST(Run, EveryFailedWriteLeavesLoadableStateAndNamesFile) {
  const ResolvedConfig config =
      small_config({"train.updates=5", "eval.every=2", "model.layers=1", "model.width=8", "model.heads=1"});
  const TemporaryFolder clean;
  work(config, clean.path());
  using Fault = FaultyFileSystem::Fault;
  // Errors of a disk take the way of a full one: every fifth of its calls will do.
  for (const auto& [number, fault, step] :
       {std::tuple{ENOSPC, Fault::error, 1}, {EIO, Fault::error, 5}, {ENOSPC, Fault::short_write, 1}}) {
    for (int n = 0;; n += step) {
      const TemporaryFolder root;
      FaultyFileSystem files(n, number, fault);
      bool failed = false;
      try {
        work(config, root.path(), {}, files);
      } catch (const Error& error) {
        failed = true;
        EXPECT_EQ(error.code(), Exit::cannot_write) << error.what();
        EXPECT_TRUE(has(error.what(), root.path()));
      }
      if (!files.failed()) break;
      if (failed) {
        EXPECT_EQ(work(config, root.path()), RunStatus::done);
      }
      EXPECT_EQ(lasting_bytes(clean.path(), config), lasting_bytes(root.path(), config)) << "operation " << n;
    }
  }
}

TEST(Run, SecondProcessLearnsHolder) {
  const ResolvedConfig config = small_config();
  const TemporaryFolder root;
  const RunStore first(root.path(), config);
  EXPECT_TRUE(
      has(error_line([&] { const RunStore second(root.path(), config); }, Exit::stopped), std::to_string(getpid())));
}

}  // namespace
}  // namespace sb
