#include "runs/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "../base/temporary_folder.h"
#include "base/error.h"
#include "base/file.h"
#include "runs/seal.h"

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

TEST(Checkpoint, ReadsBackAsWritten) {
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

TEST(Checkpoint, BytesDependOnlyOnTheArguments) {
  EXPECT_EQ(sealed_safetensors(tensors(), {{"a", "b"}}), sealed_safetensors(tensors(), {{"a", "b"}}));
  EXPECT_NE(sealed_safetensors(tensors(), {{"a", "b"}}), sealed_safetensors(tensors(), {{"a", "c"}}));
}

TEST(Checkpoint, TheLastTwoAreKept) {
  TemporaryFolder folder;
  for (const int64_t update : {1, 2, 30, 400}) save(folder, update);
  const auto left = list_checkpoints(folder.path());
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].update, 400);
  EXPECT_EQ(left[1].update, 30);
}

TEST(Checkpoint, AnEmptyOrMissingFolderHasNone) {
  TemporaryFolder folder;
  EXPECT_EQ(loads(folder, 0), -1);
  EXPECT_TRUE(list_checkpoints(folder.file("absent")).empty());
}

TEST(Checkpoint, EveryBitFlipIsFoundAndThePreviousOneUsed) {
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

TEST(Checkpoint, EveryTornLengthIsFoundAndThePreviousOneUsed) {
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

TEST(Checkpoint, TheWarningNamesTheFile) {
  TemporaryFolder folder;
  save(folder, 5);
  write_file_atomically(name_of(folder, 5), "torn");
  std::vector<std::string> warnings;
  EXPECT_FALSE(load_newest_checkpoint(folder.path(), "abc", warnings));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find(name_of(folder, 5)), std::string::npos);
}

TEST(Checkpoint, OneOfAnotherRunOrUnderAnotherNameIsPassedOver) {
  TemporaryFolder folder;
  save(folder, 1);
  save_checkpoint(folder.path(), 2, tensors(), {{"run_id", "other"}});
  EXPECT_EQ(loads(folder, 1), 1);
  std::filesystem::copy_file(name_of(folder, 1), name_of(folder, 9));
  EXPECT_EQ(loads(folder, 2), 1);
}

TEST(Checkpoint, ADamagedLaterOneDoesNotOutliveTheNextSave) {
  TemporaryFolder folder;
  for (const int64_t update : {10, 20}) save(folder, update);
  write_file_atomically(name_of(folder, 20), "torn");
  save(folder, 15);
  const auto left = list_checkpoints(folder.path());
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].update, 15);
  EXPECT_EQ(loads(folder, 0), 15);
}

TEST(Seal, CoversFilesOfManySegments) {
  std::string content = "{\"sha256\":\"" + blank_seal() + "\"}" + std::string(9 << 20, 'x');
  seal(content);
  EXPECT_TRUE(is_sealed(content));
  for (const size_t at :
       {size_t{0}, size_t{40}, size_t{100}, (size_t{4} << 20) - 1, size_t{4} << 20, content.size() - 1}) {
    std::string changed = content;
    changed[at] ^= 1;
    EXPECT_FALSE(is_sealed(changed)) << at;
  }
  EXPECT_FALSE(is_sealed(content + "x"));
  EXPECT_FALSE(is_sealed("{}"));
}

TEST(Seal, AcrossASegmentBorder) {
  const std::string head = "\"sha256\":\"";
  for (size_t shift = 0; shift < 70; shift += 7) {
    std::string content(static_cast<size_t>(4 << 20) - head.size() - shift, ' ');
    content += head + blank_seal() + "\" tail";
    seal(content);
    EXPECT_TRUE(is_sealed(content)) << shift;
    content.back() ^= 1;
    EXPECT_FALSE(is_sealed(content)) << shift;
  }
}

TEST(Seal, AJsonObjectStaysOne) {
  const std::string text = sealed_json("{\n  \"a\": 1\n}");
  EXPECT_TRUE(is_sealed(text));
  EXPECT_EQ(text.substr(0, 15), "{\n  \"a\": 1,\n  \"");
  EXPECT_TRUE(is_sealed(sealed_json("{}")));
}

TEST(Checkpoint, RefusesUnknownTypesAndReservedMetadata) {
  EXPECT_THROW(sealed_safetensors({{"x", "F31", {1}, weights.data()}}, {}), Error);
  EXPECT_THROW(sealed_safetensors(tensors(), {{"sha256", "mine"}}), Error);
}

}  // namespace
}  // namespace sb::test
