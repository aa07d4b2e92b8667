#include "store/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <span>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "store/seal.h"

namespace sb::test {
namespace {

const std::vector<float> weights = {1, 2, 3, 4, 5, 6};
const std::vector<double> moments = {0.5, -0.25};

std::vector<NamedBytes> tensors() {
  return {{"layers.0.w", "F32", {2, 3}, weights.data()}, {"adam.m", "F64", {2}, moments.data()}};
}
void save(const TemporaryFolder& folder, int64_t update) {
  save_checkpoint(folder.path(), update, tensors(), {{"run_id", "abc"}});
}
std::string name_of(const TemporaryFolder& folder, int64_t update) {
  return folder.file(checkpoint_name(update));
}

// The update that loads, or -1; `warnings` counts those passed over.
int64_t loads(const TemporaryFolder& folder, size_t warnings) {
  std::vector<std::string> lines;
  const auto checkpoint = load_newest_checkpoint(folder.path(), "abc", lines);
  EXPECT_EQ(lines.size(), warnings);
  return checkpoint ? checkpoint->update : -1;
}

TEST(Checkpoint, RoundTrips) {
  TemporaryFolder folder;
  save(folder, 78);
  std::vector<std::string> warnings;
  const auto checkpoint = load_newest_checkpoint(folder.path(), "abc", warnings);
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->update, 78);
  EXPECT_EQ(checkpoint->file.at("layers.0.w").as_doubles(), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(checkpoint->file.at("adam.m").as_doubles(), moments);
  EXPECT_EQ(checkpoint->file.metadata().at("update"), "78");
  EXPECT_TRUE(warnings.empty());
}

// Sealed whole in memory, as the format was first written.
std::string sealed_in_memory(const std::vector<StoredTensor>& stored, std::map<std::string, std::string> metadata) {
  metadata["sha256"] = blank_seal();
  std::string content = write_safetensors(stored, metadata);
  seal(content);
  return content;
}

class WatchingFileSystem : public FileSystem {
 public:
  const char *begin = nullptr, *end = nullptr;
  size_t in_place = 0, elsewhere = 0;
  ssize_t write(int fd, const void* data, size_t size) override {
    const char* at = static_cast<const char*>(data);
    (at >= begin && at + size <= end ? in_place : elsewhere) += size;
    return FileSystem::write(fd, data, size);
  }
};

TEST(Checkpoint, IsWrittenWithoutCopyingTensorsInSameBytes) {
  TemporaryFolder folder;
  std::vector<float> large(5 << 20);  // 20 MiB
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i % 1013);
  const int64_t n = static_cast<int64_t>(large.size());
  WatchingFileSystem files;
  files.begin = reinterpret_cast<const char*>(large.data());
  files.end = files.begin + 4 * large.size();
  const std::string digest =
      write_sealed_safetensors(folder.file("w"), {{"a", "F64", {2}, moments.data()}, {"b", "F32", {n}, large.data()}},
                               {{"run_id", "abc"}}, files);
  EXPECT_EQ(files.in_place, 4 * large.size());
  EXPECT_LT(files.elsewhere, 1000U);
  const std::string written = read_file(folder.file("w"), size_t{1} << 30);
  const std::vector<StoredTensor> stored = {{"a", Dtype::f64, {2}, std::as_bytes(std::span(moments))},
                                            {"b", Dtype::f32, {n}, std::as_bytes(std::span(large))}};
  EXPECT_TRUE(written == sealed_in_memory(stored, {{"run_id", "abc"}}));
  EXPECT_EQ(digest, sha256_hex(written));
  EXPECT_EQ(load_sealed_safetensors(folder.file("w")).at("b").count(), n);
}

// The newest checkpoint is intact but lacks required contents: the previous one is used.
TEST(Checkpoint, IsSkippedIfRequiredContentsAreMissing) {
  CheckpointRules rules;
  rules.tensors = tensors();
  rules.fault = [](const Checkpoint& checkpoint) -> std::string {
    return checkpoint.file.metadata().contains("evaluated") ? "" : "no metadata 'evaluated'";
  };
  const std::map<std::string, std::string> good = {{"run_id", "abc"}, {"evaluated", "1"}};
  const std::vector<float> narrow = {1, 2};
  struct Case {
    std::vector<NamedBytes> tensors;
    std::map<std::string, std::string> metadata;
    std::string about;
  };
  const std::vector<Case> cases = {
      {{tensors()[0]}, good, "adam.m"},
      {{tensors()[0], {"adam.m", "F32", {2}, narrow.data()}}, good, "expected F64 [2], got F32 [2]"},
      {{tensors()[0], {"adam.m", "F64", {1, 2}, moments.data()}}, good, "expected F64 [2], got F64 [1,2]"},
      {{tensors()[0], {"adam.m", "F64", {1}, moments.data()}}, good, "expected F64 [2], got F64 [1]"},
      {tensors(), {{"run_id", "abc"}}, "no metadata 'evaluated'"},
      {tensors(), {{"evaluated", "1"}}, "expected run_id abc, got nothing"},
  };
  for (const auto& bad : cases) {
    TemporaryFolder folder;
    save_checkpoint(folder.path(), 1, tensors(), good);
    save_checkpoint(folder.path(), 2, bad.tensors, bad.metadata);
    std::vector<std::string> warnings;
    const auto checkpoint = load_newest_checkpoint(folder.path(), "abc", warnings, rules);
    ASSERT_TRUE(checkpoint) << bad.about;
    EXPECT_EQ(checkpoint->update, 1);
    ASSERT_EQ(warnings.size(), 1U) << bad.about;
    EXPECT_NE(warnings[0].find(bad.about), std::string::npos) << warnings[0];
    EXPECT_NE(warnings[0].find(name_of(folder, 2)), std::string::npos) << warnings[0];
  }
}

TEST(Checkpoint, IsSkippedIfNotRegularFileOrTooLarge) {
  TemporaryFolder folder;
  save(folder, 1);
  ASSERT_EQ(::mkfifo(name_of(folder, 2).c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/zero", name_of(folder, 3));
  std::filesystem::create_directory(name_of(folder, 4));
  write_file_atomically(name_of(folder, 5), "");
  std::filesystem::resize_file(name_of(folder, 5), uint64_t{1} << 42);
  EXPECT_EQ(loads(folder, 4), 1);
}

TEST(Checkpoint, KeepsLastTwo) {
  TemporaryFolder folder;
  for (const int64_t update : {1, 2, 30, 400}) save(folder, update);
  const auto left = list_checkpoints(folder.path());
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].update, 400);
  EXPECT_EQ(left[1].update, 30);
}

TEST(Checkpoint, IsAbsentInEmptyOrMissingFolder) {
  TemporaryFolder folder;
  EXPECT_EQ(loads(folder, 0), -1);
  EXPECT_TRUE(list_checkpoints(folder.file("absent")).empty());
}

TEST(Checkpoint, DetectsEveryBitFlipAndUsesPreviousOne) {
  TemporaryFolder folder;
  save(folder, 1);
  save(folder, 2);
  const std::string whole = read_file(name_of(folder, 2), 1 << 20);
  for (size_t byte = 0; byte < whole.size(); ++byte) {
    std::string flipped = whole;
    flipped[byte] = static_cast<char>(flipped[byte] ^ 1 << byte % 8);
    write_file_atomically(name_of(folder, 2), flipped);
    ASSERT_EQ(loads(folder, 1), 1) << "byte " << byte;
  }
  write_file_atomically(name_of(folder, 2), whole);
  EXPECT_EQ(loads(folder, 0), 2);
}

TEST(Checkpoint, DetectsEveryTruncationAndUsesPreviousOne) {
  TemporaryFolder folder;
  save(folder, 1);
  save(folder, 2);
  const std::string whole = read_file(name_of(folder, 2), 1 << 20);
  for (size_t size = 0; size < whole.size(); ++size) {
    write_file_atomically(name_of(folder, 2), whole.substr(0, size));
    ASSERT_EQ(loads(folder, 1), 1) << size << " bytes";
  }
  write_file_atomically(name_of(folder, 2), whole + "x");
  EXPECT_EQ(loads(folder, 1), 1);
}

TEST(Checkpoint, WarningNamesFile) {
  TemporaryFolder folder;
  save(folder, 5);
  write_file_atomically(name_of(folder, 5), "torn");
  std::vector<std::string> warnings;
  EXPECT_FALSE(load_newest_checkpoint(folder.path(), "abc", warnings));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(name_of(folder, 5)), std::string::npos);
}

TEST(Checkpoint, IsSkippedIfOfAnotherRunOrRenamed) {
  TemporaryFolder folder;
  save(folder, 1);
  save_checkpoint(folder.path(), 2, tensors(), {{"run_id", "other"}});
  EXPECT_EQ(loads(folder, 1), 1);
  std::filesystem::copy_file(name_of(folder, 1), name_of(folder, 9));
  EXPECT_EQ(loads(folder, 2), 1);
}

TEST(Checkpoint, SaveRemovesDamagedLaterOne) {
  TemporaryFolder folder;
  for (const int64_t update : {10, 20}) save(folder, update);
  write_file_atomically(name_of(folder, 20), "torn");
  save(folder, 15);
  const auto left = list_checkpoints(folder.path());
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].update, 15);
  EXPECT_EQ(loads(folder, 0), 15);
}

TEST(Seal, CoversEveryByte) {
  std::string content = "{\"sha256\":\"" + blank_seal() + "\"}" + std::string(1 << 20, 'x');
  seal(content);
  EXPECT_TRUE(is_sealed(content));
  for (const size_t at : {size_t{0}, size_t{40}, size_t{100}, size_t{1} << 19, content.size() - 1}) {
    std::string changed = content;
    changed[at] ^= 1;
    EXPECT_FALSE(is_sealed(changed)) << at;
  }
  EXPECT_FALSE(is_sealed(content + "x"));
  EXPECT_FALSE(is_sealed("{}"));
}

TEST(Seal, IsDigestOfFileWithZeroedSeal) {
  const std::string blank = "head \"sha256\":\"" + blank_seal() + "\" tail";
  std::string content = blank;
  seal(content);
  const size_t at = find_seal(content);
  EXPECT_EQ(content.substr(at, 64), sha256_hex(blank));
  // However the file lies in memory, the seal across a border or not.
  for (size_t cut = 0; cut <= content.size(); ++cut) {
    const std::string_view whole = content;
    const std::vector<std::string_view> pieces = {whole.substr(0, cut), whole.substr(cut)};
    ASSERT_EQ(seal_digits(pieces, at), sha256_hex(blank)) << cut;
  }
}

TEST(Seal, KeepsJsonValid) {
  const std::string text = sealed_json("{\n  \"a\": 1\n}");
  EXPECT_TRUE(is_sealed(text));
  EXPECT_EQ(text.substr(0, 15), "{\n  \"a\": 1,\n  \"");
  EXPECT_TRUE(is_sealed(sealed_json("{}")));
}

TEST(Checkpoint, RejectsUnknownTypesAndReservedMetadata) {
  const TemporaryFolder folder;
  EXPECT_THROW(write_sealed_safetensors(folder.file("w"), {{"x", "F31", {1}, weights.data()}}, {}), Error);
  EXPECT_THROW(write_sealed_safetensors(folder.file("w"), tensors(), {{"sha256", "mine"}}), Error);
}

}  // namespace
}  // namespace sb::test
