#include "store/pack.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/expect.h"
#include "../base/faulty_file_system.h"
#include "../base/temporary_folder.h"
#include "../config/model_rules.h"
#include "base/file.h"
#include "base/sha256.h"
#include "plain_result.h"
#include "store/gzip.h"
#include "store/known_runs.h"
#include "store/open_run.h"
#include "store/run_check.h"
#include "store/run_store.h"
#include "store/seal.h"
#include "store/thinned_metrics.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;

ResolvedConfig config(int seed) {
  return resolve_text("[train]\nupdates = 120\nwarmup = 1\n[run]\nseed = " + std::to_string(seed) + "\n");
}

// 120 updates, two evaluations, a recorded sample; without a result where the run is not `done`.
std::string make_run(const std::string& root, int seed, bool done = true) {
  const ResolvedConfig resolved = config(seed);
  RunStore store(root, resolved);
  const double weight = 2;
  for (int update = 1; update <= 118; ++update) {
    store.add({update, "train", {{"loss", 1.0 / update}}});
    if (update == 60) store.add({update, "valid", {{"accuracy", 0.5}}});
  }
  store.save(118, {{"weight", "F64", {1}, &weight}});
  if (!done) return store.folder();
  Result result = plain_result(resolved);
  result.samples = {{0, 40, {{3, 5, 1, {-1}, {{5, .75}, {6, .25}}, {{5, 1}}}}}};
  store.finish(result, {{"weight", "F64", {1}, &weight}});
  return store.folder();
}

std::string written(const TemporaryFolder& folder, const std::vector<TarFile>& files) {
  write_archive(folder.file("a.tar"), files);
  return folder.file("a.tar");
}

std::string archive_fault(const std::string& bytes) {
  return error_line([&] { parse_archive(bytes, "a.tar"); });
}

TEST(Pack, KeepsResultsConfigsAndEveryTwentyFifthUpdate) {
  TemporaryFolder folder;
  const std::string run = make_run(folder.file("runs"), 1);
  make_run(folder.file("runs"), 2, false);
  const Packed packed = pack_runs(folder.file("runs"));
  EXPECT_EQ(packed.runs, 1U);
  EXPECT_EQ(packed.unfinished, 1U);
  EXPECT_FALSE(packed.damaged);
  std::vector<std::string> names;
  for (const auto& file : packed.files) names.push_back(file.name);
  const std::string id = config(1).run_id;
  EXPECT_EQ(names, (std::vector<std::string>{id + "/config.json", id + "/config.toml", id + "/result.json",
                                             id + "/metrics.thinned.json", "packed.json"}));
  write_archive(folder.file("a.tar"), packed.files);
  RunTree tree;
  const auto found = find_runs(folder.file("a.tar"), tree);
  ASSERT_EQ(found.runs.size(), 1U);
  const RunMetrics metrics = load_metrics(found.runs[0], tree);
  EXPECT_EQ(metrics.every, 25);
  std::vector<int64_t> updates;
  for (const auto& row : metrics.rows) updates.push_back(row.phase == "valid" ? -row.update : row.update);
  EXPECT_EQ(updates, (std::vector<int64_t>{25, 50, -60, 75, 100, 118}));
  EXPECT_EQ(load_metrics(run).rows.size(), 119U);
  EXPECT_EQ(load_metrics(run).every, 1);
}

TEST(Pack, RunIsIntactInArchiveAndUnpacked) {
  TemporaryFolder folder;
  make_run(folder.file("runs/deep"), 1);
  write_archive(folder.file("a.tar"), pack_runs(folder.file("runs")).files);
  RunTree tree;
  const auto found = find_runs(folder.file("a.tar"), tree);
  ASSERT_EQ(found.runs.size(), 1U);
  EXPECT_EQ(found.runs[0], folder.file("a.tar/deep/") + config(1).run_id);
  const RunReport report = inspect_run(found.runs[0], CheckScope::all, tree);
  EXPECT_EQ(report.state, RunState::packed) << (report.problems.empty() ? "" : report.problems[0]);
  EXPECT_TRUE(report.result_stands);
  EXPECT_EQ(open_result(found.runs[0], tree).run_id, config(1).run_id);
  ASSERT_EQ(
      std::system(("mkdir " + folder.file("out") + " && tar -xf " + folder.file("a.tar") + " -C " + folder.file("out"))
                      .c_str()),
      0);
  const std::string unpacked = folder.file("out/deep/") + config(1).run_id;
  EXPECT_EQ(inspect_run(unpacked).state, RunState::packed);
  EXPECT_TRUE(has_result(unpacked)) << "nothing is left to do";
  EXPECT_EQ(known_runs({folder.file("a.tar"), folder.file("out")}, "test").folders.size(), 1U);
  // The same files, from wherever they are packed.
  const std::string again = tar_bytes(pack_runs(folder.file("out")).files);
  EXPECT_EQ(again, read_file(folder.file("a.tar"), 1 << 20));
  EXPECT_EQ(tar_bytes(pack_runs(folder.file("a.tar")).files), again);
}

TEST(Pack, LeavesOutRecordedSamplesAndNothingElse) {
  TemporaryFolder folder;
  const std::string run = make_run(folder.file("runs"), 1);
  Result whole = load_result(run);
  ASSERT_EQ(whole.samples.size(), 1U);
  const std::string digest = sha256_hex(comparable_text(whole));
  const Packed packed = pack_runs(folder.file("runs"));
  const std::string& text = packed.files[2].content;
  ASSERT_TRUE(packed.files[2].name.ends_with("/result.json"));
  EXPECT_EQ(line_of(text, "whole_sha256"), "\"" + digest + "\"") << "the run's own numbers_sha256";
  RunTree tree;
  const auto found = find_runs(written(folder, packed.files), tree);
  const Result kept = load_result(found.runs.at(0), tree);
  EXPECT_TRUE(kept.samples.empty());
  whole.samples.clear();
  EXPECT_EQ(result_text(kept), result_text(whole));
}

// An archive of an earlier version has the whole result.json.
TEST(Pack, ArchiveWithSamplesStaysIntact) {
  TemporaryFolder folder;
  const std::string run = make_run(folder.file("runs"), 1);
  const Packed packed = pack_runs(folder.file("runs"));
  auto older = packed.files;
  older[2].content = read_file(run + "/result.json", 1 << 20);
  older.pop_back();
  older.push_back({packing_list_name, packing_list(older)});
  const std::string file = written(folder, older);
  RunTree tree;
  const auto found = find_runs(file, tree);
  ASSERT_EQ(found.runs.size(), 1U);
  EXPECT_EQ(inspect_run(found.runs[0], CheckScope::all, tree).state, RunState::packed);
  EXPECT_EQ(load_result(found.runs[0], tree).samples.size(), 1U);
  EXPECT_EQ(tar_bytes(pack_runs(file).files), tar_bytes(packed.files)) << "packed anew, it has none";
}

TEST(Pack, ThinnedMetricsOfAnotherRunAreDamage) {
  TemporaryFolder folder;
  make_run(folder.file("runs"), 1);
  make_run(folder.file("runs"), 2);
  fs::create_directory(folder.file("out"));
  for (const auto& file : pack_runs(folder.file("runs")).files) {
    fs::create_directories(fs::path(folder.file("out/" + file.name)).parent_path());
    write_file_atomically(folder.file("out/" + file.name), file.content);
  }
  const std::string one = folder.file("out/") + config(1).run_id, two = folder.file("out/") + config(2).run_id;
  EXPECT_EQ(inspect_run(one).state, RunState::packed);
  const std::string path = one + "/metrics.thinned.json", good = read_file(path, 1 << 20);
  write_file_atomically(path, read_file(two + "/metrics.thinned.json", 1 << 20));
  EXPECT_EQ(inspect_run(one).state, RunState::damaged);
  EXPECT_NE(error_line([&] { load_metrics(one); }), "");
  write_file_atomically(path, good.substr(0, good.size() - 1));
  EXPECT_EQ(inspect_run(one).state, RunState::damaged);
  fs::remove(path);
  EXPECT_EQ(inspect_run(one).state, RunState::damaged);
}

TEST(Pack, DoesNotPackItsOwnArchive) {
  TemporaryFolder folder;
  make_run(folder.file("runs"), 1);
  const std::string file = folder.file("runs") + "/all.tar";
  const std::string first = write_archive(file, pack_runs(folder.file("runs"), file).files);
  const Packed again = pack_runs(folder.file("runs"), file);
  EXPECT_EQ(again.runs, 1U);
  EXPECT_EQ(write_archive(file, again.files), first);
  EXPECT_EQ(pack_runs(folder.file("runs")).runs, 2U) << "archives of others are looked into";
}

TEST(Pack, ExcludesAndReportsDamagedFiles) {
  TemporaryFolder folder;
  make_run(folder.file("runs"), 1);
  const std::string torn = make_run(folder.file("runs"), 2);
  write_file_atomically(torn + "/metrics.jsonl", "{}\n");
  write_file_atomically(folder.file("runs/suite.json"), "{}");
  const Packed packed = pack_runs(folder.file("runs"));
  EXPECT_EQ(packed.runs, 1U);
  EXPECT_TRUE(packed.damaged);
  ASSERT_EQ(packed.notes.size(), 2U);
  EXPECT_TRUE(has(packed.notes[0], "metrics.jsonl"));
  EXPECT_TRUE(has(packed.notes[1], "suite.json"));
  EXPECT_TRUE(has(error_line([&] { pack_runs(folder.path() + "/nowhere"); }), "[pack] expected intact runs, got none"));
}

TEST(Pack, ReportsHostileArchivesInOneLine) {
  TemporaryFolder folder;
  make_run(folder.file("runs"), 1);
  const auto files = pack_runs(folder.file("runs")).files;
  const std::string good = tar_bytes(files);
  EXPECT_EQ(archive_fault(good), "");
  const auto with = [&](const std::function<void(std::vector<TarFile>&)>& change) {
    auto other = files;
    change(other);
    return archive_fault(tar_bytes(other));
  };
  EXPECT_TRUE(has(with([](auto& f) { f.pop_back(); }), "no packed.json"));
  EXPECT_TRUE(has(with([](auto& f) { f[2].content += " "; }), "SHA-256 mismatch"));
  EXPECT_TRUE(has(with([](auto& f) { f.erase(f.begin()); }), "lacks"));
  EXPECT_TRUE(has(with([](auto& f) { f.push_back({"more", "x"}); }), "does not name"));
  EXPECT_TRUE(has(with([](auto& f) { f.back().content[20] ^= 1; }), "SHA-256 mismatch"));
  EXPECT_TRUE(has(with([](auto& f) { f.back().content = sealed_json("{\"schema\": 2, \"files\": {}}"); }), "schema 2"));
  EXPECT_NE(with([](auto& f) { f.back().content = sealed_json("{\"schema\": 1, \"files\": [1]}"); }), "");
  EXPECT_NE(with([](auto& f) { f.back().content = sealed_json("{\"schema\": 1}"); }), "");
  // A list made to fit a changed result does not make the run whole.
  auto forged = files;
  forged.pop_back();
  forged[2].content[forged[2].content.find("\"toy\"") + 1] = 'b';
  forged.push_back({packing_list_name, packing_list(forged)});
  write_archive(folder.file("forged.tar"), forged);
  RunTree tree;
  const auto found = find_runs(folder.file("forged.tar"), tree);
  ASSERT_EQ(found.runs.size(), 1U);
  EXPECT_EQ(inspect_run(found.runs[0], CheckScope::all, tree).state, RunState::damaged);
  EXPECT_TRUE(known_runs({folder.file("forged.tar")}, "test").folders.empty());
}

TEST(Pack, CompressedArchiveHasSameFiles) {
  if (!has_gzip()) GTEST_SKIP() << "this build has no zlib";
  TemporaryFolder folder;
  make_run(folder.file("runs"), 1);
  const auto files = pack_runs(folder.file("runs")).files;
  const std::string digest = write_archive(folder.file("a.tar.gz"), files);
  const std::string bytes = read_file(folder.file("a.tar.gz"), 1 << 20);
  EXPECT_EQ(sha256_hex(bytes), digest);
  EXPECT_EQ(bytes, gzip(tar_bytes(files), "b")) << "no name, no time";
  EXPECT_EQ(parse_archive(bytes, "a.tar.gz"), parse_archive(tar_bytes(files), "a.tar"));
  for (const size_t cut : {size_t{3}, size_t{20}, bytes.size() / 2, bytes.size() - 1})
    EXPECT_NE(archive_fault(bytes.substr(0, cut)), "") << cut;
  EXPECT_TRUE(has(archive_fault(bytes + "x"), "something follows"));
  std::string flipped = bytes;
  flipped[bytes.size() / 2] ^= 1;
  EXPECT_NE(archive_fault(flipped), "");
  EXPECT_TRUE(
      has(error_line([&] { gunzip(gzip(std::string(1 << 20, 'x'), "bomb"), "bomb", 1000, [](std::string_view) {}); }),
          "at most 1000 bytes unpacked"));
}

TEST(Pack, FullDiskKeepsExistingArchive) {
  TemporaryFolder folder;
  make_run(folder.file("runs"), 1);
  const auto files = pack_runs(folder.file("runs")).files;
  write_file_atomically(folder.file("a.tar"), "before");
  int failures = 0;
  for (int call = 0; call < 20; ++call) {
    FaultyFileSystem system(call);
    try {
      write_archive(folder.file("a.tar"), files, system);
      if (!system.failed()) break;
    } catch (const Error& error) {
      ++failures;
      EXPECT_EQ(error.code(), Exit::cannot_write);
    }
    const std::string now = read_file(folder.file("a.tar"), 1 << 20);
    EXPECT_TRUE(now == "before" || archive_fault(now).empty()) << "call " << call;
  }
  EXPECT_GT(failures, 2);
  EXPECT_EQ(archive_fault(read_file(folder.file("a.tar"), 1 << 20)), "");
}

}  // namespace
}  // namespace sb::test
