#include "store/evaluation_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "../config/model_rules.h"
#include "base/error.h"
#include "base/file.h"
#include "random_result.h"
#include "store/run_store.h"
#include "store/seal.h"

namespace sb::test {
namespace {

SavedEvaluation evaluation(uint64_t seed, const std::string& run_id = "0123456789abcdef") {
  RandomResult random(seed);
  SavedEvaluation e;
  e.run_id = run_id;
  e.model = RunConfig().model.name;
  e.task = RunConfig().task.task.number;
  e.objective = "state";
  e.split = "test";
  e.at = {static_cast<int>(seed)};
  e.with_gates = true;
  e.weights = "final";
  e.weights_sha256 = std::string(64, 'a');
  e.points = {random.measurement()};
  e.points[0].at = e.at[0];
  e.gates = {{e.at[0], random.gates(), {{0, {0.5}}}}};
  e.made = random.made();
  if (seed % 3 == 0) {
    e.device = "cpu";
    e.precision = "fp32";
  }
  return e;
}

TEST(EvaluationFile, RoundTripsEveryField) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const std::string text = evaluation_text(evaluation(seed));
    EXPECT_EQ(evaluation_text(parse_evaluation(text, "e")), text);
  }
}

TEST(EvaluationFile, NameDependsOnlyOnRequest) {
  SavedEvaluation a = evaluation(1), b = evaluation(2);
  b.at = a.at;
  EXPECT_EQ(evaluation_name(a), evaluation_name(b));
  for (const auto& change : std::vector<void (*)(SavedEvaluation&)>{
           [](SavedEvaluation& e) { e.split = "valid"; }, [](SavedEvaluation& e) { e.samples = 7; },
           [](SavedEvaluation& e) { e.at.push_back(9); }, [](SavedEvaluation& e) { e.with_gates = false; },
           [](SavedEvaluation& e) { e.weights = "file"; }, [](SavedEvaluation& e) { e.weights_sha256 = "b"; },
           [](SavedEvaluation& e) { e.device = "cpu"; }, [](SavedEvaluation& e) { e.precision = "fp32"; }}) {
    SavedEvaluation other = a;
    change(other);
    EXPECT_NE(evaluation_name(other), evaluation_name(a));
  }
}

TEST(EvaluationFile, KeepsSameNumbersAndRejectsOthers) {
  const TemporaryFolder folder;
  SavedEvaluation e = evaluation(1);
  const std::string path = save_evaluation(folder.path(), e);
  const std::string before = read_file(path, 1 << 20);
  EXPECT_TRUE(is_sealed(before));
  e.made = RandomResult(9).made();
  EXPECT_EQ(save_evaluation(folder.path(), e), path);
  EXPECT_EQ(read_file(path, 1 << 20), before);
  e.points[0].loss += 1;
  EXPECT_TRUE(has(error_line([&] { save_evaluation(folder.path(), e); }, Exit::check_failed), path));
  EXPECT_EQ(read_file(path, 1 << 20), before);
}

TEST(EvaluationFile, NamesAndReplacesDamagedFile) {
  const TemporaryFolder folder;
  const SavedEvaluation e = evaluation(1);
  EXPECT_EQ(evaluation_fault(folder.path(), e), "");
  const std::string path = save_evaluation(folder.path(), e);
  const std::string whole = read_file(path, 1 << 20);
  EXPECT_EQ(evaluation_fault(folder.path(), e), "");
  SavedEvaluation renamed = evaluation(2);
  for (const std::string& damaged :
       {whole.substr(0, whole.size() / 2), std::string(), sealed_json("{}"), sealed_json(evaluation_text(renamed)),
        sealed_json(evaluation_text(evaluation(1, "fedcba9876543210")))}) {
    write_file_atomically(path, damaged);
    EXPECT_NE(evaluation_fault(folder.path(), e).find(path), std::string::npos) << damaged.substr(0, 80);
    std::vector<std::string> problems;
    EXPECT_TRUE(load_evaluations(folder.path(), {e.run_id, e.model, e.task}, &problems).empty());
    EXPECT_EQ(problems.size(), 1U);
    EXPECT_EQ(save_evaluation(folder.path(), e), path);
    EXPECT_EQ(read_file(path, 1 << 20), whole);
  }
  write_file_atomically(path, sealed_json("{\"evaluation_schema\": 7}"));
  EXPECT_THROW(evaluation_fault(folder.path(), e), OtherSchema) << "of another version: not ours to replace";
  EXPECT_THROW(save_evaluation(folder.path(), e), OtherSchema);
  std::filesystem::remove(path);
  std::filesystem::create_symlink("/dev/null", path);
  EXPECT_THROW(evaluation_fault(folder.path(), e), Error);
}

TEST(EvaluationFile, RejectsMeasurementsOtherThanRequested) {
  const TemporaryFolder folder;
  SavedEvaluation e = evaluation(5);
  e.samples = e.points[0].samples;
  const std::string path = save_evaluation(folder.path(), e);
  for (const auto& change : std::vector<void (*)(SavedEvaluation&)>{
           [](SavedEvaluation& s) { s.points[0].at = 6; }, [](SavedEvaluation& s) { s.points[0].at.reset(); },
           [](SavedEvaluation& s) { s.points.clear(); }, [](SavedEvaluation& s) { s.points.push_back(s.points[0]); },
           [](SavedEvaluation& s) { ++s.points[0].samples; }, [](SavedEvaluation& s) { s.points[0].split = "valid"; },
           [](SavedEvaluation& s) { s.gates.clear(); }, [](SavedEvaluation& s) { s.gates[0].at = 6; },
           [](SavedEvaluation& s) { s.model = "other"; }, [](SavedEvaluation& s) { ++s.task; }}) {
    SavedEvaluation forged = e;
    change(forged);
    ASSERT_EQ(evaluation_name(forged), evaluation_name(e));
    write_file_atomically(path, sealed_json(evaluation_text(forged)));
    EXPECT_NE(evaluation_fault(folder.path(), e).find(path), std::string::npos) << evaluation_text(forged);
    std::vector<std::string> problems;
    EXPECT_TRUE(load_evaluations(folder.path(), {e.run_id, e.model, e.task}, &problems).empty());
    EXPECT_EQ(problems.size(), 1U);
  }
}

TEST(EvaluationFile, ListsAndExcludesDamagedFiles) {
  const TemporaryFolder root;
  const ResolvedConfig config = resolve_text("[run]\nseed = 3\n");
  const std::string folder = RunStore(root.path(), config).folder();
  EXPECT_TRUE(load_evaluations(folder).empty());
  save_evaluation(folder, evaluation(1, config.run_id));
  save_evaluation(folder, evaluation(2, config.run_id));
  EXPECT_EQ(load_evaluations(folder).size(), 2U);
  save_evaluation(folder, evaluation(3));  // of another run
  write_file_atomically(folder + "/eval-0000000000000000.json", sealed_json(std::string(50'000, '[') + "{}"));
  write_file_atomically(folder + "/eval-0000000000000001.json", sealed_json("{\"evaluation_schema\": 7}"));
  write_file_atomically(folder + "/eval-0000000000000002.json", "{\"torn");
  write_file_atomically(folder + "/eval-notes.json", "mine");
  std::vector<std::string> problems;
  EXPECT_EQ(load_evaluations(folder, &problems).size(), 2U);
  EXPECT_EQ(problems.size(), 4U);
  EXPECT_THROW(load_evaluations(folder), Error);
}

}  // namespace
}  // namespace sb::test
