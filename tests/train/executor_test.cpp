#include "train/executor.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "../base/temporary_folder.h"
#include "small_run.h"
#include "train/gpu.h"

namespace sb {
namespace {

using test::small_config;
using test::TemporaryFolder;

TensorBatch batch_of(const RunData& data, int64_t update, int batch = 4) {
  Loader loader(data, Split::train, batch, update, update + 1);
  return to_tensors(loader.next(), *data.task, at::kFloat);
}

// Operations that hand a value of a tensor to the host, while one of these lives.
class HostReads {
 public:
  HostReads() {
    seen().clear();
    handle_ = at::addGlobalCallback(at::RecordFunctionCallback(&note));
  }
  ~HostReads() { at::removeCallback(handle_); }
  static std::vector<std::string>& seen() {
    static std::vector<std::string> names;
    return names;
  }

 private:
  static std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& call) {
    static const std::set<std::string> reading = {"aten::_local_scalar_dense", "aten::is_nonzero", "aten::equal",
                                                  "aten::nonzero", "aten::masked_select"};
    const std::string name(call.name());
    if (reading.contains(name)) seen().push_back(name);
    return nullptr;
  }
  at::CallbackHandle handle_;
};

TEST(Step, ReadsNoValueOnTheHost) {
  {
    const HostReads reads;
    at::ones({1}).item<float>();
    ASSERT_FALSE(HostReads::seen().empty());  // else reads are not seen at all
  }
  for (const auto& model : test::paper_models()) {
    for (const int accumulate : {1, 2}) {
      const ResolvedConfig config = small_config(
          {"model.name=" + model, "train.accumulate=" + std::to_string(accumulate), "quirks.delta_bf16=true"});
      const RunData data = make_data(config.values);
      Trainer trainer(config.values, data);
      const TensorBatch batch = batch_of(data, 0);
      const HostReads reads;
      const StepHandle handle = trainer.step(batch, 0);
      EXPECT_EQ(HostReads::seen(), std::vector<std::string>()) << model;
      EXPECT_GT(handle.read().loss, 0);
    }
  }
}

TEST(Step, BatchCountsItsRealFrames) {
  for (const char* objective : {"state", "predict"}) {
    const RunData data = make_data(small_config({"task.number=2", std::string("task.objective=") + objective}).values);
    const TensorBatch batch = batch_of(data, 3);
    EXPECT_EQ(batch.real_frames, batch.target.ge(0).sum().item<int64_t>()) << objective;
    EXPECT_LT(batch.real_frames, batch.target.numel()) << objective;
  }
}

TEST(Step, PadsSamplesOfUnequalLengthToFewShapes) {
  const auto trainer_of = [](const ResolvedConfig& config) { return Trainer(config.values, make_data(config.values)); };
  const Trainer equal = trainer_of(small_config());
  EXPECT_EQ(equal.padded(41), 41);
  const Trainer unequal = trainer_of(small_config({"task.number=3", "task.gap_start=10"}));
  std::set<int64_t> shapes;
  for (int64_t frames = 1; frames <= 1024; ++frames) {
    EXPECT_GE(unequal.padded(frames), frames);
    shapes.insert(unequal.padded(frames));
  }
  EXPECT_EQ(shapes.size(), 16U);
  EXPECT_EQ(*shapes.rbegin(), 1024);
}

TEST(Step, KeepsParametersFromFirstNonFiniteUpdate) {
  const ResolvedConfig config = small_config();
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  CpuExecutor executor(trainer);
  EXPECT_TRUE(executor.step(batch_of(data, 0), 0).read().finite);
  const at::Tensor before = trainer.network().parameters().flat().clone(),
                   first = trainer.adam().first_moment().clone();
  TensorBatch broken = batch_of(data, 1);
  broken.input[0][3][0] = std::numeric_limits<float>::quiet_NaN();
  const StepHandle at_fault = executor.step(broken, 1), after = executor.step(batch_of(data, 2), 2);
  EXPECT_FALSE(at_fault.read().finite);
  EXPECT_TRUE(std::isnan(at_fault.read().loss));
  EXPECT_FALSE(after.read().finite);
  EXPECT_TRUE(std::isfinite(after.read().loss));
  EXPECT_TRUE(at::equal(trainer.network().parameters().flat(), before));
  EXPECT_TRUE(at::equal(trainer.adam().first_moment(), first));
  const Divergence found = trainer.locate(broken, 1);
  EXPECT_EQ(found.update, 1);
  EXPECT_EQ(found.layer, -1);
  EXPECT_EQ(found.tensor, "encoder");
}

// The first rows break after the encoder, the last ones in it: micro-batches find the same place as the whole batch.
TEST(Step, NamesFirstNonFinitePlaceOfAllMicroBatches) {
  for (const char* accumulate : {"train.accumulate=1", "train.accumulate=2", "train.accumulate=4"}) {
    const ResolvedConfig config =
        small_config({accumulate, "model.dropout=0", "model.name=transformer", "model.residual=post"});
    const RunData data = make_data(config.values);
    Trainer trainer(config.values, data);
    TensorBatch batch = batch_of(data, 0);
    batch.input[0][3][0] = 1e38F;
    Divergence found = trainer.locate(batch, 0);
    EXPECT_EQ(found.layer, 0) << accumulate;
    EXPECT_EQ(found.tensor, "layer output") << accumulate;
    batch.input[3][3][0] = std::numeric_limits<float>::quiet_NaN();
    found = trainer.locate(batch, 0);
    EXPECT_EQ(found.layer, -1) << accumulate;
    EXPECT_EQ(found.tensor, "encoder") << accumulate;
  }
}

// A channel with zero weights does not affect the network, but it affects the gradient of these weights.
TEST(Step, NamesParameterOfNonFiniteBackwardPass) {
  const ResolvedConfig config = small_config({"model.dropout=0"});
  const RunData data = make_data(config.values);
  Trainer trainer(config.values, data);
  {
    const at::NoGradGuard no_grad;
    const ParameterList& parameters = trainer.network().parameters();
    parameters.find("encoder.weight")->value.select(1, 0).zero_();
    parameters.find("decoder.weight")->value.detach().mul_(1e6);
  }
  TensorBatch batch = batch_of(data, 0);
  batch.input[0][3][0] = 3e38F;
  const StepFigures figures = trainer.step(batch, 0).read();
  EXPECT_TRUE(std::isfinite(figures.loss));
  EXPECT_FALSE(figures.finite);
  trainer.step(batch_of(data, 1), 1);  // other gradients now
  const Divergence found = trainer.locate(batch, 0);
  EXPECT_EQ(found.layer, -1);
  EXPECT_EQ(found.tensor, "gradient of encoder.weight");
}

// Reads late, as a device would have it.
class Lagging final : public Executor {
 public:
  Lagging(Trainer& trainer, size_t ahead) : inner_(trainer), ahead_(ahead) {}
  StepHandle step(const TensorBatch& batch, int64_t update) override { return inner_.step(batch, update); }
  size_t max_in_flight() const override { return ahead_; }

 private:
  CpuExecutor inner_;
  size_t ahead_;
};

RunStatus work_ahead(const ResolvedConfig& config, const std::string& root, size_t ahead,
                     const TrainHooks& hooks = {}) {
  PreparedRun run(config);
  run.executor = std::make_unique<Lagging>(run.trainer, ahead);
  RunStore store(root, config);
  return train(run, store, hooks);
}

TEST(Executor, LateReadsDoNotChangeBytes) {
  for (const char* every : {"run.checkpoint_every=0", "run.checkpoint_every=3"}) {
    const ResolvedConfig config = small_config({every});
    const TemporaryFolder at_once, late, stopped;
    ASSERT_EQ(test::work(config, at_once.path()), RunStatus::done);
    std::vector<int64_t> reported;
    TrainHooks hooks;
    hooks.progress = [&](const TrainProgress& p) {
      if (p.phase == "train") reported.push_back(p.update);
    };
    ASSERT_EQ(work_ahead(config, late.path(), 3, hooks), RunStatus::done);
    EXPECT_EQ(reported, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    EXPECT_EQ(test::lasting_bytes(at_once.path(), config), test::lasting_bytes(late.path(), config));
    int stops = 0;
    for (;; ++stops) {
      ASSERT_LT(stops, 100);
      TrainHooks stopping;
      int left = 3 + stops;
      stopping.stop = [&left] { return --left < 0; };
      if (work_ahead(config, stopped.path(), 5, stopping) != RunStatus::stopped) break;
    }
    EXPECT_GT(stops, 2);
    EXPECT_EQ(test::lasting_bytes(at_once.path(), config), test::lasting_bytes(stopped.path(), config));
  }
}

RunStatus work_split(const ResolvedConfig& config, const std::string& root, int64_t micro_batches,
                     const TrainHooks& hooks = {}) {
  PreparedRun run(config);
  EXPECT_TRUE(run.trainer.may_split());
  run.trainer.split(micro_batches);  // as an executor does whose memory is small
  RunStore store(root, config);
  return train(run, store, hooks);
}

TEST(Executor, AutomaticMicroBatchesEqualExplicitOnes) {
  const ResolvedConfig config = small_config({"task.number=2", "quirks.sum_accumulated=true"});
  const ResolvedConfig given = small_config({"task.number=2", "train.accumulate=2"});
  const TemporaryFolder asked, alone, stopped, less;
  ASSERT_EQ(test::work(given, asked.path()), RunStatus::done);
  std::vector<std::string> told;
  TrainHooks hooks;
  hooks.warning = [&](const std::string& line) { told.push_back(line); };
  ASSERT_EQ(work_split(config, alone.path(), 2, hooks), RunStatus::done);
  EXPECT_EQ(told, std::vector<std::string>{"train.accumulate = auto selects 2 because of the GPU's memory"});
  EXPECT_EQ(test::content(asked.path(), given, "metrics.jsonl"), test::content(alone.path(), config, "metrics.jsonl"));
  const auto result = [&](const TemporaryFolder& root) { return load_result(root.path() + "/" + config.run_id); };
  EXPECT_EQ(result(alone).made->accumulate, 2);
  EXPECT_TRUE(result(alone).quirks.empty()) << "nobody asked for micro-batches";

  // Goes on as it began where more memory is free later on, and says so where less is.
  TrainHooks stop;
  int left = 6;
  stop.stop = [&left] { return --left < 0; };
  ASSERT_EQ(work_split(config, stopped.path(), 2, stop), RunStatus::stopped);
  ASSERT_EQ(work_split(config, stopped.path(), 1), RunStatus::done);
  EXPECT_EQ(test::lasting_bytes(alone.path(), config), test::lasting_bytes(stopped.path(), config));
  EXPECT_EQ(result(stopped).made->accumulate, 2);
  left = 6;
  ASSERT_EQ(work_split(config, less.path(), 1, stop), RunStatus::stopped);
  told.clear();
  ASSERT_EQ(work_split(config, less.path(), 4, hooks), RunStatus::done);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("comes to 4, the last updates were made with 1"), std::string::npos) << told[0];
  EXPECT_EQ(result(less).made->accumulate, 4);
}

TEST(Executor, LateReadFindsSameDivergence) {
  ResolvedConfig config = small_config({"train.clip=0", "train.warmup=0", "eval.every=0"});
  test::diverge(config);
  std::vector<std::pair<std::string, DivergenceFigure>> found;
  for (const size_t ahead : {0, 1, 6}) {
    const TemporaryFolder root;
    ASSERT_EQ(work_ahead(config, root.path(), ahead), RunStatus::diverged);
    const Result result = load_result(root.path() + "/" + config.run_id);
    ASSERT_TRUE(result.divergence);
    EXPECT_EQ(result.updates, result.divergence->update);
    found.emplace_back(test::content(root.path(), config, "metrics.jsonl"), *result.divergence);
  }
  for (const auto& [metrics, figure] : found) {
    EXPECT_EQ(metrics, found[0].first);
    EXPECT_EQ(figure.update, found[0].second.update);
    EXPECT_EQ(figure.layer, found[0].second.layer);
    EXPECT_EQ(figure.tensor, found[0].second.tensor);
    EXPECT_FALSE(figure.tensor.empty());
  }
}

TEST(GpuCode, RunsOnItsGenerationFromItsMinorVersionOn) {
  for (const auto& [major, minor] : {std::pair(8, 0), {8, 6}, {8, 9}}) EXPECT_TRUE(gpu_code_runs("80", major, minor));
  EXPECT_FALSE(gpu_code_runs("89", 8, 6));
  EXPECT_FALSE(gpu_code_runs("80", 9, 0));
  EXPECT_TRUE(gpu_code_runs("90a", 9, 0));
  for (const auto& [major, minor] : {std::pair(9, 1), {10, 0}}) EXPECT_FALSE(gpu_code_runs("90a", major, minor));
  for (const auto& [major, minor] : {std::pair(8, 6), {9, 0}, {10, 3}, {12, 1}})
    EXPECT_TRUE(gpu_code_runs("80,89,90a,100,120", major, minor));
  EXPECT_FALSE(gpu_code_runs("80,89,90a,100,120", 7, 5));
}

TEST(Executor, NamesDivergenceOnGpuAsOnCpu) {
  if (!has_gpu()) GTEST_SKIP() << gpu_facts().missing;
  for (const Precision precision : {Precision::fp32, Precision::amp}) {
    SCOPED_TRACE(to_string(precision));
    ResolvedConfig config = small_config({"train.clip=0", "train.warmup=0", "eval.every=0"});
    config.values.train.device = DeviceKind::cuda;
    config.values.train.precision = precision;
    test::diverge(config);
    const TemporaryFolder root;
    ASSERT_EQ(test::work(config, root.path()), RunStatus::diverged);
    const Result result = load_result(root.path() + "/" + config.run_id);
    EXPECT_EQ(result.status, "diverged");
    ASSERT_TRUE(result.divergence);
    EXPECT_GE(result.divergence->update, 1);
    EXPECT_LE(result.divergence->update, 3);
    EXPECT_EQ(result.updates, result.divergence->update);
    EXPECT_FALSE(result.divergence->tensor.empty());
  }
}

}  // namespace
}  // namespace sb
