#include "base/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "base/error.h"
#include "expect.h"

namespace sb {
namespace {

std::string framed(const std::string& header, const std::string& data = "") {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::string complaint(const std::string& content) {
  const std::string line = error_line([&] { Safetensors::parse(content, "x.safetensors"); });
  EXPECT_TRUE(lacks(line, "\n"));
  return line;
}

void expect_complaint(const std::string& content, const std::string& about) {
  const auto line = complaint(content);
  EXPECT_TRUE(has(line, about, "x.safetensors"));
}

StoredTensor tensor(const char* name, Dtype dtype, std::vector<int64_t> shape, const void* data, size_t bytes) {
  return {name, dtype, std::move(shape), {static_cast<const std::byte*>(data), bytes}};
}

TEST(Safetensors, RoundTrips) {
  const float f[] = {1.5F, -2, 3, 0};
  const int64_t i[] = {-7, 1LL << 40};
  const std::string file =
      write_safetensors({tensor("b", Dtype::f32, {2, 2}, f, 16), tensor("a", Dtype::i64, {2}, i, 16),
                         tensor("none", Dtype::u8, {0, 3}, f, 0)},
                        {{"who", "me \"quoted\" \n"}});
  const auto read = Safetensors::parse(file, "x");
  EXPECT_EQ(read.metadata().at("who"), "me \"quoted\" \n");
  ASSERT_EQ(read.tensors().size(), 3u);
  EXPECT_EQ(read.tensors()[0].name, "b");
  EXPECT_EQ(read.at("b").shape, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(read.at("b").as_doubles(), (std::vector<double>{1.5, -2, 3, 0}));
  EXPECT_EQ(read.at("a").as_doubles()[1], static_cast<double>(1LL << 40));
  EXPECT_EQ(read.at("none").count(), 0);
  EXPECT_EQ(read.find("c"), nullptr);
  EXPECT_THROW(read.at("c"), Error);
  EXPECT_EQ(write_safetensors(read.tensors(), read.metadata()), file);
}

TEST(Safetensors, AlignsDataToEightBytes) {
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde"}) {
    const std::string file = write_safetensors({tensor(name, Dtype::u8, {0}, name, 0)});
    EXPECT_EQ(file.size() % 8, 0u);
  }
}

TEST(Safetensors, WidensHalfPrecisionExactly) {
  const uint16_t half[] = {0x3C00, 0xC000, 0x0001, 0x7C00, 0x3555};
  const uint16_t brain[] = {0x3F80, 0xC000};
  const auto read = Safetensors::parse(
      write_safetensors({tensor("h", Dtype::f16, {5}, half, 10), tensor("b", Dtype::bf16, {2}, brain, 4)}), "x");
  const auto h = read.at("h").as_doubles();
  EXPECT_EQ(h[0], 1);
  EXPECT_EQ(h[1], -2);
  EXPECT_EQ(h[2], 0x1p-24);
  EXPECT_TRUE(std::isinf(h[3]));
  EXPECT_EQ(h[4], 0x555p-12);
  EXPECT_EQ(read.at("b").as_doubles(), (std::vector<double>{1, -2}));
}

TEST(Safetensors, NamesEveryHeaderError) {
  const std::string four(4, '\0'), eight(8, '\0');
  expect_complaint("", "8 bytes");
  expect_complaint(std::string(8, '\xff'), "header length");
  expect_complaint(framed("[]"), "'{'");
  expect_complaint(framed("{\"a\":"), "not valid JSON");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})", four), "not valid JSON");
  expect_complaint(framed(R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", four), "unknown dtype 'F33'");
  expect_complaint(framed(R"({"a":{"dtype":"F64","shape":[1],"data_offsets":[0,4]}})", four), "expected 8");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})", four), "0..8 of 4");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", four), "4..0");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", four), "-1");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", four), "1.5");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"), "2^64");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", four),
                   "too large");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", four), "expected 2");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1]}})", four), "lacks data_offsets");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1}})", four), "'more'");
  expect_complaint(framed(R"({"a":[]})"), "a list");
  expect_complaint(framed(R"({"__metadata__":{"k":1}})"), "unexpected 1");
  expect_complaint(framed(R"({"__metadata__":{"k":"1","k":"2"}})"), "duplicate key 'k'");
  expect_complaint(framed(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}})"), "duplicate name 'a'");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                          R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                          eight),
                   "overlaps");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", eight), "leaves a hole");
  expect_complaint(framed(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", eight), "4 bytes after");
}

TEST(Safetensors, SurvivesDeepNestingAndLongNames) {
  complaint(framed("{\"a\":" + std::string(200000, '[')));
  complaint(framed(std::string(200000, '{')));
  EXPECT_LT(complaint(framed("{\"" + std::string(100000, 'n') + "\":1}")).size(), 300u);
}

TEST(Safetensors, ReaderSurvivesBitFlipsAndTruncation) {
  const float f[] = {1, 2, 3};
  const std::string file = write_safetensors({tensor("weight", Dtype::f32, {3}, f, 12)}, {{"k", "v"}});
  for (size_t i = 0; i < file.size(); ++i)
    for (const int bit : {0, 3, 5, 7}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      complaint(changed);
    }
  for (size_t length = 0; length < file.size(); ++length) EXPECT_NE(complaint(file.substr(0, length)), "");
}

TEST(Safetensors, WriterRejectsWrongSizesAndDuplicateNames) {
  const float f[] = {1, 2};
  EXPECT_THROW(write_safetensors({tensor("a", Dtype::f32, {3}, f, 8)}), Error);
  EXPECT_THROW(write_safetensors({tensor("a", Dtype::f32, {2}, f, 8), tensor("a", Dtype::f32, {2}, f, 8)}), Error);
}

}  // namespace
}  // namespace sb
