#include "models/verify.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/torch_pch.h"

namespace sb {
namespace {

const std::string folder = std::string(SB_TEST_DATA) + "/layers";

std::vector<std::string> recorded_files() {
  std::vector<std::string> stems;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) stems.push_back(entry.path().stem().string());
  std::sort(stems.begin(), stems.end());
  return stems;
}

// Model first, so that one pattern finds all tests of a model: net_gla is gla_net.
std::string test_name(const testing::TestParamInfo<std::string>& made) {
  for (const std::string kind : {"net", "core"})
    if (made.param.starts_with(kind + "_")) return made.param.substr(kind.size() + 1) + "_" + kind;
  return made.param;
}

class RecordedVector : public testing::TestWithParam<std::string> {
 protected:
  static void expect_pass(VerifyPrecision precision) {
    VerifyOptions options;
    options.precision = precision;
    const auto row = verify_file(Safetensors::load(folder + "/" + GetParam() + ".safetensors"), GetParam(), options);
    EXPECT_EQ(row.status, VerifyRow::Status::pass) << row.reason;
    for (const auto* group : {&row.outputs, &row.input_gradients, &row.parameter_gradients, &row.final_weights})
      EXPECT_LE(group->error, group->tolerance) << group->tensor;
  }
};

TEST_P(RecordedVector, PassesInDouble) {
  expect_pass(VerifyPrecision::fp64);
}
TEST_P(RecordedVector, PassesInFloat) {
  expect_pass(VerifyPrecision::fp32);
}

INSTANTIATE_TEST_SUITE_P(Zoo, RecordedVector, testing::ValuesIn(recorded_files()), test_name);

TEST(Verify, FolderGivesOneRowPerFileInOrder) {
  const auto rows = verify_directory(folder, {});
  const auto files = recorded_files();
  EXPECT_GE(files.size(), 20u);
  ASSERT_EQ(rows.size(), files.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i].file, files[i]);
}

// The file with one tensor's values scaled.
std::string tampered(const std::string& path, const std::string& tensor) {
  const Safetensors file = Safetensors::load(path);
  std::vector<StoredTensor> tensors(file.tensors());
  std::vector<float> changed;
  for (auto& stored : tensors)
    if (stored.name == tensor) {
      for (const double v : stored.as_doubles()) changed.push_back(static_cast<float>(v * 1.01));
      stored.bytes = std::as_bytes(std::span(changed));
    }
  return write_safetensors(tensors, file.metadata());
}

TEST(Verify, NamesWrongTensor) {
  const auto file =
      Safetensors::parse(tampered(folder + "/gla_d64.safetensors", "g.k_proj.weight"), "gla_d64.safetensors");
  const auto row = verify_file(file, "gla_d64", {});
  EXPECT_EQ(row.status, VerifyRow::Status::fail);
  EXPECT_EQ(row.parameter_gradients.tensor, "g.k_proj.weight");
  EXPECT_NEAR(row.parameter_gradients.error, 0.01, 1e-3);
}

TEST(Verify, SkipsUnknownLayersWithReason) {
  const auto file = Safetensors::parse(write_safetensors({}, {{"layer", "mystery"}}), "x");
  const auto row = verify_file(file, "mystery_d8", {});
  EXPECT_EQ(row.status, VerifyRow::Status::skip);
  EXPECT_NE(row.reason.find("mystery"), std::string::npos);
}

TEST(Verify, RejectsCorruptFilesAndMissingFolders) {
  const auto place = std::filesystem::temp_directory_path() / "sb_verify_corrupt";
  std::filesystem::create_directories(place);
  std::ofstream(place / "core_gla.safetensors") << "not a container";
  EXPECT_THROW(verify_directory(place.string(), {}), Error);
  std::filesystem::remove_all(place);
  EXPECT_THROW(verify_directory(place.string(), {}), Error);
}

}  // namespace
}  // namespace sb
