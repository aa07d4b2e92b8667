#include "report/folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "../base/temporary_folder.h"
#include "base/file.h"
#include "report/table.h"
#include "store/evaluation_file.h"
#include "store/pack.h"
#include "store/run_lock.h"
#include "store/run_store.h"
#include "store/seal.h"
#include "synthetic.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

ResolvedConfig config(int seed, const std::string& rest = "") {
  return resolve_text("[run]\nseed = " + std::to_string(seed) + "\n" + rest);
}

std::string finish(const std::string& root, const ResolvedConfig& resolved) {
  RunStore store(root, resolved);
  const double weight = 2;
  store.finish(result_of(resolved), {{"weight", "F64", {1}, &weight}});
  return store.folder();
}

bool never() {
  return false;
}

bool noted(const std::vector<Note>& notes, const std::string& part) {
  return std::any_of(notes.begin(), notes.end(),
                     [&](const Note& note) { return note.find(part) != std::string::npos; });
}

TEST(Folder, ReadsSubfoldersAndNamesCopies) {
  TemporaryFolder root;
  finish(root.file("a"), config(1));
  finish(root.file("b/c"), config(2));
  fs::copy(root.file("a"), root.file("d"), fs::copy_options::recursive);
  const Rows rows = read_rows(root.file(""));
  EXPECT_EQ(rows.runs.size(), 2U);
  EXPECT_EQ(rows.cells.size(), 1U);
  EXPECT_TRUE(noted(rows.notes, "a second copy of the run"));
}

TEST(Folder, GroupsRunsOfFoldersRegardlessOfLabels) {
  TemporaryFolder root;
  for (const int seed : {1, 2})
    finish(root.file("a"), resolve_text("[run]\nlabel = \"none\"\nseed = " + std::to_string(seed) + "\n"));
  for (const int seed : {2, 3, 4}) finish(root.file("b"), config(seed));
  EXPECT_EQ(read_rows(root.file("")).groups.size(), 1U) << "some of one setting have none";
  for (const int seed : {5, 6})
    finish(root.file("c"),
           resolve_text("[run]\nlabel = \"dropout\"\nseed = " + std::to_string(seed) + "\n[model]\ndropout = 0.1\n"));
  EXPECT_EQ(read_rows(root.file("")).groups.size(), 2U) << "another setting keeps its label";
  const Rows rows = read_all_rows({root.file("a"), root.file("b")});
  EXPECT_EQ(rows.runs.size(), 4U);
  EXPECT_EQ(rows.groups.size(), 1U);
}

TEST(Folder, ReadsFolderWithTwoSpellingsOnce) {
  TemporaryFolder root;
  const std::string done = finish(root.file("a"), config(1));
  const RunStore unfinished(root.file("a"), config(2));
  const FoundRuns found = read_runs(
      {done, root.file("a/../a/" + config(1).run_id), unfinished.folder(), root.file("a/./" + config(2).run_id + "/")});
  EXPECT_EQ(found.runs.size(), 1U);
  EXPECT_EQ(found.missing.size(), 1U);
}

TEST(Folder, PrefersCopyWithoutDamagedEvaluation) {
  TemporaryFolder root;
  const std::string torn = finish(root.file("a"), config(1));
  fs::copy(root.file("a"), root.file("b"), fs::copy_options::recursive);
  write_file_atomically(torn + "/eval-0123456789abcdef.json", "{}");
  const Rows rows = read_rows(root.file(""));
  ASSERT_EQ(rows.runs.size(), 1U);
  EXPECT_TRUE(rows.runs[0].folder.starts_with(root.file("b"))) << rows.runs[0].folder;
  EXPECT_TRUE(noted(rows.notes, "which is used because a saved evaluation of this copy is damaged"));
}

TEST(Folder, ListsDamagedRunsAndKeepsOthers) {
  TemporaryFolder root;
  finish(root.file(""), config(1));
  const std::string torn = finish(root.file(""), config(2)) + "/result.json";
  write_file_atomically(torn, read_file(torn, 1 << 20).substr(0, 100));
  const std::string edited = finish(root.file(""), config(3)) + "/config.toml";
  write_file_atomically(edited, read_file(edited, 1 << 20) + "\n# edited\n");
  const std::string older = finish(root.file(""), config(4)) + "/result.json";
  write_file_atomically(older, sealed_json("{\"run_id\": \"0123\", \"status\": \"done\", \"test\": {}}"));
  RunStore unfinished(root.file(""), config(5));
  const std::string hostile = finish(root.file(""), config(6)) + "/result.json";
  write_file_atomically(
      hostile, sealed_json("{\"schema\": 2, \"grid\": " + std::string(100000, '[') + std::string(100000, ']') + "}"));
  const Rows rows = read_rows(root.file(""));
  EXPECT_EQ(rows.runs.size(), 1U);
  EXPECT_EQ(rows.notes.size(), 5U);
  EXPECT_EQ(std::count_if(rows.notes.begin(), rows.notes.end(),
                          [](const Note& note) { return note.kind == Note::Kind::damaged; }),
            3);
  EXPECT_EQ(std::count_if(rows.notes.begin(), rows.notes.end(),
                          [](const Note& note) { return note.kind == Note::Kind::left_out; }),
            2);
  EXPECT_TRUE(noted(rows.notes, torn));
  EXPECT_TRUE(noted(rows.notes, edited));
  EXPECT_TRUE(noted(rows.notes, "1 of result schema 1 (this program reads " + std::to_string(result_schema) + ")"));
  EXPECT_TRUE(noted(rows.notes, "1 not finished: " + config(5).run_id));
  EXPECT_TRUE(noted(rows.notes, hostile));
  EXPECT_TRUE(cell_table(rows, TableFormat::text)
                  .starts_with("1 of 6 runs: 1 is not finished, 3 are damaged, 1 is of another result schema.\n"))
      << cell_table(rows, TableFormat::text);
}

TEST(Folder, ShowsSavedEvaluationsOfFinalWeightsOnly) {
  TemporaryFolder root;
  const auto resolved = config(1, "[task]\nnumber = 2\n");
  const std::string folder = finish(root.file(""), resolved);
  SavedEvaluation saved;
  saved.run_id = resolved.run_id;
  saved.model = resolved.values.model.name;
  saved.task = 2;
  saved.objective = "state";
  saved.split = "test";
  saved.at = {30};
  saved.weights = "final";
  saved.weights_sha256 = load_result(folder).files.at("final.safetensors");
  saved.points = {measured("test", .25, .9)};
  saved.points[0].at = 30;
  save_evaluation(folder, saved);
  saved.device = "cpu";
  saved.precision = "fp32";
  saved.points[0].accuracy = .5;
  save_evaluation(folder, saved);
  saved.device.reset();
  saved.precision.reset();
  saved.weights = "file";
  saved.weights_sha256 = sha256_hex("other weights");
  saved.points[0].accuracy = .75;
  save_evaluation(folder, saved);
  saved.weights = "final";
  save_evaluation(folder, saved);
  write_file_atomically(folder + "/eval-0123456789abcdef.json", "{}");
  const Rows rows = read_rows(root.file(""));
  ASSERT_EQ(rows.cells.size(), 3U);
  EXPECT_EQ(rows.cells[1].point.at, 30);
  EXPECT_DOUBLE_EQ(rows.cells[1].mean, .25);
  EXPECT_EQ(rows.cells[2].point.computed, "cpu, fp32");
  EXPECT_DOUBLE_EQ(rows.cells[2].mean, .5);
  EXPECT_NE(cell_table(rows, TableFormat::csv).find("\"cpu, fp32\""), std::string::npos);
  EXPECT_NE(cell_table(rows, TableFormat::text).find("computed on cpu, fp32"), std::string::npos);
  EXPECT_TRUE(noted(rows.notes, "1 saved evaluation of a checkpoint or of weights trained elsewhere"));
  EXPECT_TRUE(
      noted(rows.notes, "measured on other final weights than the run's: " + folder + "/" + evaluation_name(saved)));
  EXPECT_TRUE(noted(rows.notes, "eval-0123456789abcdef.json"));
}

TEST(Folder, ExcludesDamagedRunsFromMeans) {
  const auto use = [](const std::string& folder, const char* name) { return folder + "/" + name; };
  TemporaryFolder root;
  const std::string whole = finish(root.file(""), config(1));
  const std::string rows_changed = use(finish(root.file(""), config(2)), "metrics.jsonl");
  write_file_atomically(rows_changed, "changed");
  const std::string torn = use(finish(root.file(""), config(3)), "final.safetensors");
  write_file_atomically(torn, read_file(torn, 1 << 20).substr(0, 20));
  const std::string foreign = use(finish(root.file(""), config(4)), "final.safetensors");
  fs::copy_file(use(whole, "final.safetensors"), foreign, fs::copy_options::overwrite_existing);
  const std::string outside = finish(root.file(""), config(5));
  Result result = load_result(outside);
  result.files["../../x"] = sha256_hex("x");
  write_file_atomically(use(outside, "result.json"), sealed_json(result_text(result)));
  fs::remove(use(finish(root.file(""), config(6)), "final.safetensors"));
  const Rows rows = read_rows(root.file(""));
  EXPECT_EQ(rows.runs.size(), 2U) << "the whole one and the one without weights";
  EXPECT_EQ(rows.notes.size(), 4U);
  for (const auto& path : {rows_changed, torn, foreign, use(outside, "result.json")})
    EXPECT_TRUE(noted(rows.notes, "left out, damaged: [run] " + path)) << path;
  for (const auto& run : rows.runs) EXPECT_TRUE(inspect_run(run.folder).result_stands);
}

TEST(Folder, ExcludesResultsThatContradictTheirConfig) {
  TemporaryFolder root;
  finish(root.file(""), config(1));
  const std::string forged = finish(root.file(""), config(2));
  Result result = load_result(forged);
  result.width += 1;
  write_file_atomically(forged + "/result.json", sealed_json(result_text(result)));
  const Rows rows = read_rows(root.file(""));
  EXPECT_EQ(rows.runs.size(), 1U);
  EXPECT_TRUE(noted(rows.notes, "left out, damaged: [run] " + forged + "/result.json: model.width: expected "));
}

TEST(Folder, ReportsInOneLineWhyNoRunIsFinished) {
  TemporaryFolder root;
  const auto fault = [&] { return error_line([&] { read_rows(root.file("")); }); };
  EXPECT_NE(fault().find("expected finished runs"), std::string::npos);
  RunStore unfinished(root.file(""), config(1));
  EXPECT_NE(fault().find("1 not finished"), std::string::npos);
  EXPECT_EQ(fault().find('\n'), std::string::npos);
}

TEST(Folder, RestoresAxesOfSuite) {
  TemporaryFolder root;
  Suite suite = suite_of(R"(
[suite]
name = "decay"
select = ["train.weight_decay"]
[grid]
train.weight_decay = [0.0, 0.1]
run.seed = [1, 2]
)");
  for (const auto& run : suite.runs) finish(root.file(""), run);
  EXPECT_EQ(read_rows(root.file("")).cells.size(), 2U);
  EXPECT_EQ(read_rows(root.file(""), {.select = {"train.weight_decay"}}).cells.size(), 1U);
  record_suite(root.file(""), suite, never);
  const Rows rows = read_rows(root.file(""));
  EXPECT_EQ(rows.cells.size(), 1U);
  EXPECT_TRUE(noted(rows.notes, "also selected over train.weight_decay, as set by suite 'decay'"));

  Suite other = suite_of("[suite]\nname = \"other\"\nselect = [\"model.dropout\"]\n");
  record_suite(root.file(""), other, never);
  record_suite(root.file(""), suite, never);
  const std::string text = read_file(root.file("suite.json"), 1 << 20);
  EXPECT_TRUE(is_sealed(text));
  EXPECT_EQ(nlohmann::json::parse(text).at("suites").size(), 2U);
  EXPECT_EQ(read_rows(root.file("")).axes.select.size(), 4U);

  write_file_atomically(root.file("suite.json"), text + " ");
  const Rows damaged = read_rows(root.file(""));
  EXPECT_EQ(damaged.cells.size(), 2U);
  EXPECT_TRUE(noted(damaged.notes, "not used: "));
}

constexpr const char* kMixedSuite = R"(
[grid]
level = [
  {train.weight_decay = 0.0, task.number = 2, eval.gaps = [10, 20]},
  {train.weight_decay = 0.1, task.number = 3},
  {train.position_stretch = 10, model.name = "transformer", task.number = 2},
  {model.delta = false, task.number = 2, model.name = "gated_delta_net"},
]
run.seed = [1, 2]
)";

// The same conditions select the same runs of a suite before and after training.
TEST(Folder, ConditionsSelectAsThoseOfASuite) {
  TemporaryFolder root;
  const Suite suite = suite_of(kMixedSuite);
  for (const auto& run : suite.runs) finish(root.file(""), run);
  const std::string id = suite.runs.front().run_id;
  const std::vector<std::pair<std::vector<std::string>, size_t>> cases = {
      {{"train.weight_decay=1e-1"}, 2},
      {{"train.weight_decay=0,0.1"}, 8},
      {{"train.weight_decay=0.0", "run.seed=2"}, 3},
      {{"grammar.seed=2", "train.seed=2"}, 4},
      {{"task.number=2"}, 6},
      {{"eval.gaps=[10,20]"}, 2},
      {{"eval.gaps=[20, 10]"}, 2},
      {{"model.name=transformer"}, 2},
      {{"model.name=\"gated_delta_net\",transformer"}, 8},
      {{"model.delta=off"}, 2},
      {{"model.delta=false"}, 2},
      {{"train.position_stretch=10"}, 2},
      {{"train.position_stretch=1"}, 6},  // a default, which no run id contains
      {{"run.id=" + id}, 1}};
  for (const auto& [conditions, expected] : cases) {
    Suite part = suite_of(kMixedSuite);
    keep_where(part, conditions, "--where");
    std::set<std::string> wanted, found;
    for (const auto& run : part.runs) wanted.insert(run.run_id);
    for (const auto& run : read_rows(root.file(""), {.where = conditions}).runs) found.insert(run.result.run_id);
    EXPECT_EQ(found, wanted) << conditions.front();
    EXPECT_EQ(found.size(), expected) << conditions.front();
  }
}

TEST(Folder, ConditionsApplyToUnfinishedRuns) {
  TemporaryFolder root;
  for (const auto& run : suite_of("[grid]\nrun.seed = [1, 2]\n").runs) finish(root.file(""), run);
  RunStore unfinished(root.file(""), config(9));
  const auto rows = [&](std::vector<std::string> where) {
    return read_rows(root.file(""), {.where = std::move(where)});
  };
  EXPECT_TRUE(rows({"train.seed=2"}).missing.empty()) << "the unfinished run has another seed";
  EXPECT_EQ(rows({"train.seed=2,9"}).missing.size(), 1U);
  const auto fault = [&](const std::string& where) { return error_line([&] { rows({where}); }); };
  EXPECT_EQ(fault("train.seeds=2"), "[table --where] no run has the key 'train.seeds', did you mean train.seed?");
  EXPECT_EQ(fault("train.seed=7"), "[table --where] no run has train.seed = '7', expected 1, 2 or 9");
  EXPECT_EQ(fault("train.seed=9"), "[table] no finished run meets the conditions, 1 unfinished or damaged");
  EXPECT_NE(fault("train.seed").find("expected SECTION.KEY=VALUE"), std::string::npos);
  EXPECT_NE(fault("train.seed=2,").find("expected a value on both sides of a comma"), std::string::npos);
}

TEST(Folder, ConditionsWithoutAnyFinishedRun) {
  TemporaryFolder root;
  EXPECT_EQ(error_line([&] { read_rows(root.file(""), {.where = {"train.seed=1"}}); }),
            error_line([&] { read_rows(root.file("")); }));
}

TEST(Folder, ScaleSelectsRuns) {
  TemporaryFolder root;
  const std::string quick = "grammar.vocab = 13, grammar.ambiguities = 12, grammar.depth = 12, task.length = 40";
  const std::string small = "grammar.vocab = 21, grammar.ambiguities = 20, grammar.depth = 20, task.length = 200";
  const Suite suite = suite_of("[grid]\nlevel = [{" + quick + "}, {" + small + "}]\n");
  for (const auto& run : suite.runs) finish(root.file(""), run);
  const auto rows = read_rows(root.file(""), {.scale = "small"});
  ASSERT_EQ(rows.runs.size(), 1U);
  EXPECT_EQ(rows.runs[0].result.run_id, suite.runs[1].run_id);
  EXPECT_EQ(error_line([&] { read_rows(root.file(""), {.scale = "paper"}); }),
            "[table --scale] no run has the scale 'paper', expected quick or small");
}

TEST(Folder, NotesOfMatchedNetworksAreOfThoseShown) {
  TemporaryFolder root;
  Suite suite = suite_of("[grid]\nrun.seed = [1, 2]\nmodel.width = [128, 256]\n");
  for (const auto& run : suite.runs) finish(root.file(""), run);
  suite.matched = {{"gated_delta_net", 128, MatchedSize::params, 1000, 1000},
                   {"gated_delta_net", 256, MatchedSize::flops, 2000, 2000}};
  record_suite(root.file(""), suite, never);
  const auto notes = [&](const TableChoice& choice) { return read_rows(root.file(""), choice).notes; };
  EXPECT_TRUE(noted(notes({}), "parameters matched to 1,000"));
  EXPECT_TRUE(noted(notes({}), "FLOPs per token matched to 2,000"));
  EXPECT_FALSE(noted(notes({.where = {"model.width=256"}}), "parameters matched to 1,000"));
  EXPECT_TRUE(noted(notes({.where = {"model.width=256"}}), "FLOPs per token matched to 2,000"));
}

TEST(Folder, KeepsAxesOfEverySuite) {
  TemporaryFolder root;
  finish(root.file(""), config(1));
  const auto record = [&](const std::string& text, double patience = 10) {
    return record_suite(root.file(""), suite_of("[suite]\n" + text), never, patience);
  };
  EXPECT_TRUE(record("select = [\"train.weight_decay\"]\n").empty());
  record("select = [\"train.clip\"]\n");
  record("select = [\"train.clip\"]\n");
  EXPECT_EQ(read_rows(root.file("")).axes.select.size(), 4U) << "neither has a name";
  record("name = \"other\"\naverage = [\"train.clip\"]\n");
  const Rows rows = read_rows(root.file(""));
  EXPECT_EQ(rows.axes.select.size(), 3U);
  EXPECT_EQ(rows.axes.average.size(), 2U);
  EXPECT_TRUE(noted(rows.notes, "neither selected nor averaged over train.clip"));

  const std::string path = root.file("suite.json");
  write_file_atomically(path, "precious");
  EXPECT_NE(record_fault(root.file("")), "");
  const auto warnings = record("name = \"new\"\nselect = [\"train.clip\"]\n");
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(path + ".damaged"), std::string::npos) << warnings[0];
  EXPECT_EQ(read_file(path + ".damaged", 100), "precious");
  EXPECT_EQ(record_fault(root.file("")), "");

  const std::string before = read_file(path, 1 << 20);
  const RunLock held(path + ".lock");
  EXPECT_EQ(record("name = \"late\"\n", .05).size(), 1U);
  EXPECT_EQ(read_file(path, 1 << 20), before);
}

TEST(Folder, RecordsConcurrentSuites) {
  TemporaryFolder root;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const Suite suite = suite_of("[suite]\nname = \"s" + std::to_string(i) + "\"\n");
      for (int k = 0; k < 5; ++k) record_suite(root.file(""), suite, never, 60);
    });
  for (auto& thread : threads) thread.join();
  const std::string text = read_file(root.file("suite.json"), 1 << 20);
  EXPECT_EQ(nlohmann::json::parse(text).at("suites").size(), 8U);
}

TEST(Folder, RejectsKeysThatCannotBeSelectedOver) {
  TemporaryFolder root;
  finish(root.file(""), config(1, "[model]\nname = \"mamba2\"\nd_state = 32\n"));
  const auto fault = [&](const std::string& key) {
    return error_line([&] { read_rows(root.file(""), {.select = {key}}); });
  };
  EXPECT_EQ(fault("train.batch"), "");
  EXPECT_EQ(fault("model.d_state"), "");
  EXPECT_NE(fault("train.bacth").find("did you mean train.batch"), std::string::npos);
  for (const char* key : {"train.seed", "grammar.seed", "task.gap_max", "model.name", "eval.every", "run.label"})
    EXPECT_NE(fault(key).find("[table --select] expected a key of [model] or [train]"), std::string::npos) << key;
}

TEST(Folder, ArchiveGivesTablesOfItsFolder) {
  TemporaryFolder root;
  const Suite suite = suite_of(
      "[suite]\nname = 'matched'\nselect = ['train.weight_decay']\nmatch = 'params'\nmatch_target = "
      "80000\n[model]\nlayers = 2\n"
      "[task]\nnumber = 2\n[eval]\ngaps = [10, 20]\n"
      "[grid]\nmodel.name = ['gla', 'mamba']\nrun.seed = [1, 2]\ntrain.weight_decay = [0.0, 0.1]\n");
  for (const auto& run : suite.runs) finish(root.file("runs"), run);
  record_suite(root.file("runs"), suite, never);
  const std::string begun = RunStore(root.file("runs"), config(9)).folder();  // left out of both tables
  fs::remove_all(begun);
  write_archive(root.file("runs.tar"), pack_runs(root.file("runs")).files);
  const Rows folder = read_rows(root.file("runs")), archive = read_rows(root.file("runs.tar"));
  for (const auto format :
       {TableFormat::text, TableFormat::markdown, TableFormat::csv, TableFormat::json, TableFormat::latex}) {
    EXPECT_EQ(cell_table(archive, format), cell_table(folder, format));
    EXPECT_EQ(run_table(archive, format), run_table(folder, format));
  }
  EXPECT_TRUE(noted(folder.notes, "parameters matched to 80,000: 1.000 (gla) to 1.000 (mamba) of it"));
  // A folder of archives is read too; a damaged one is named.
  fs::create_directory(root.file("results"));
  fs::rename(root.file("runs.tar"), root.file("results/a.tar"));
  write_file_atomically(root.file("results/b.tar"), "torn");
  const Rows results = read_rows(root.file("results"));
  EXPECT_EQ(results.runs.size(), suite.runs.size());
  EXPECT_TRUE(noted(results.notes, "left out, damaged: [tar]"));
  EXPECT_NE(error_line([&] { read_rows(root.file("results/b.tar")); }), "");
}

TEST(Folder, CombinesFoldersAndArchivesInOneTable) {
  TemporaryFolder root;
  const Suite suite = suite_of("[grid]\nmodel.name = ['gla', 'mamba']\n");
  finish(root.file("a"), suite.runs[0]);
  finish(root.file("b"), suite.runs[1]);
  write_archive(root.file("b.tar"), pack_runs(root.file("b")).files);
  const Rows rows = read_rows(std::vector<std::string>{root.file("a"), root.file("b.tar")});
  EXPECT_EQ(rows.groups.size(), 2U);
  EXPECT_EQ(read_rows(std::vector<std::string>{root.file("a"), root.file("a")}).runs.size(), 1U) << "read once";
  fs::create_directory(root.file("empty"));
  const std::vector<std::string> empty = {root.file("empty"), root.file("empty")};
  EXPECT_EQ(error_line([&] { read_rows(empty); }), "[table] expected finished runs below the folder, got none, " +
                                                       root.file("empty") + ", " + root.file("empty"));
}

}  // namespace
}  // namespace sb::test
