#include "store/events.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace sb::test {
namespace {

// A decoder written from the format alone: bitwise CRC, and protocol buffer fields by number.
uint32_t slow_crc32c(std::string_view data) {
  uint32_t crc = ~0U;
  for (const char c : data)
    for (int bit = 0; bit < 8; ++bit) {
      const bool out = (crc ^ static_cast<uint32_t>(static_cast<unsigned char>(c) >> bit)) & 1U;
      crc = crc >> 1 ^ (out ? 0x82F63B78U : 0U);
    }
  return ~crc;
}

template <class T>
T take(std::string_view& in) {
  if (in.size() < sizeof(T)) throw std::runtime_error("too short");
  T value;
  std::memcpy(&value, in.data(), sizeof(T));
  in.remove_prefix(sizeof(T));
  return value;
}

void expect_masked(uint32_t stored, std::string_view data) {
  const uint32_t rotated = stored - 0xA282EAD8U;
  EXPECT_EQ(rotated << 15 | rotated >> 17, slow_crc32c(data));
}

std::vector<std::string> records(std::string_view file) {
  std::vector<std::string> out;
  while (!file.empty()) {
    const std::string_view length_bytes = file.substr(0, 8);
    const auto length = take<uint64_t>(file);
    expect_masked(take<uint32_t>(file), length_bytes);
    out.emplace_back(file.substr(0, length));
    file.remove_prefix(length);
    expect_masked(take<uint32_t>(file), out.back());
  }
  return out;
}

uint64_t take_varint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<uint8_t>(in);
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
}

struct Event {
  double wall = 0;
  int64_t step = 0;
  std::string version;
  std::vector<std::pair<std::string, float>> scalars;
};

std::pair<std::string, float> decode_scalar(std::string_view in) {
  std::pair<std::string, float> out;
  while (!in.empty()) {
    const auto key = take_varint(in);
    if (key == (1 << 3 | 2)) {
      const auto size = take_varint(in);
      out.first = in.substr(0, size);
      in.remove_prefix(size);
    } else if (key == (2 << 3 | 5)) {
      out.second = take<float>(in);
    } else {
      throw std::runtime_error("unknown field of Value");
    }
  }
  return out;
}

Event decode(std::string_view in) {
  Event event;
  while (!in.empty()) {
    const auto key = take_varint(in);
    if (key == (1 << 3 | 1)) {
      event.wall = take<double>(in);
    } else if (key == (2 << 3 | 0)) {
      event.step = static_cast<int64_t>(take_varint(in));
    } else {
      const auto size = take_varint(in);
      std::string_view part = in.substr(0, size);
      in.remove_prefix(size);
      if (key == (3 << 3 | 2)) {
        event.version = part;
      } else if (key == (5 << 3 | 2)) {
        while (!part.empty()) {
          EXPECT_EQ(take_varint(part), 1U << 3 | 2U);
          const auto length = take_varint(part);
          event.scalars.push_back(decode_scalar(part.substr(0, length)));
          part.remove_prefix(length);
        }
      } else {
        throw std::runtime_error("unknown field of Event");
      }
    }
  }
  return event;
}

TEST(Events, CrcMatchesPublishedCheckValue) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283U);
  EXPECT_EQ(slow_crc32c("123456789"), 0xE3069283U);
}

TEST(Events, AreReadByIndependentDecoder) {
  const std::vector<MetricRow> rows = {
      {0, "train", {{"loss", 7.5}, {"lr", 1e-6}}},
      {300, "valid", {{"accuracy", 0.25}, {"loss", std::numeric_limits<double>::quiet_NaN()}}},
      {301, "", {{"x", -1}}},
      {400000, "test", {}},
  };
  const auto all =
      records(encode_events(rows, {{0, "train", {{"wall", 1000.5}}}, {300, "valid", {{"wall", 2000.25}}}}));
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(decode(all[0]).version, "brain.Event:2");
  const auto first = decode(all[1]);
  EXPECT_EQ(first.wall, 1000.5);
  EXPECT_EQ(first.scalars, (std::vector<std::pair<std::string, float>>{{"train/loss", 7.5F}, {"train/lr", 1e-6F}}));
  const auto second = decode(all[2]);
  EXPECT_EQ(second.step, 300);
  EXPECT_EQ(second.wall, 2000.25);
  EXPECT_EQ(second.scalars, (std::vector<std::pair<std::string, float>>{{"valid/accuracy", 0.25F}}));
  EXPECT_EQ(decode(all[3]).scalars, (std::vector<std::pair<std::string, float>>{{"x", -1.F}}));
  EXPECT_EQ(decode(all[3]).wall, 2000.25);
  EXPECT_EQ(decode(all[4]).step, 400000);
}

TEST(Events, EvaluationAndUpdateOfSameNumberHaveSeparateTimes) {
  const std::vector<MetricRow> rows = {{0, "train", {{"loss", 3}}},
                                       {1, "train", {{"loss", 2}}},
                                       {2, "valid", {{"loss", 2}}},
                                       {2, "train", {{"loss", 1}}},
                                       {3, "train", {{"loss", 1}}}};
  const std::vector<MetricRow> timing = {{0, "train", {{"wall", 10}}},
                                         {1, "train", {{"wall", 11}}},
                                         {2, "valid", {{"wall", 60}}},
                                         {2, "train", {{"wall", 61}}}};
  std::vector<double> walls;
  for (const auto& record : records(encode_events(rows, timing))) walls.push_back(decode(record).wall);
  EXPECT_EQ(walls, (std::vector<double>{10, 10, 11, 60, 61, 61}));
}

TEST(Metrics, RoundTrip) {
  const std::vector<MetricRow> rows = {{1, "train", {{"loss", 0.1}, {"norm", 1e-300}}}, {2, "valid", {{"loss", 3}}}};
  const std::string text = metric_lines(rows);
  EXPECT_EQ(text,
            "{\"update\": 1, \"phase\": \"train\", \"loss\": 0.1, \"norm\": 1e-300}\n"
            "{\"update\": 2, \"phase\": \"valid\", \"loss\": 3.0}\n");
  EXPECT_EQ(metric_lines(parse_metrics(text, "metrics.jsonl")), text);
}

TEST(Metrics, NonFiniteValuesAreStoredAsNull) {
  const std::string text = metric_line({5, "train", {{"loss", INFINITY}}});
  const auto rows = parse_metrics(text, "metrics.jsonl");
  EXPECT_TRUE(std::isnan(rows.front().values.front().second));
  EXPECT_EQ(metric_lines(rows), text);
}

TEST(Metrics, RejectTornAndForeignLines) {
  for (const char* text :
       {"{\"update\":1}", "{\"update\":1\n", "[]\n", "{\"update\":\"x\"}\n", "{\"update\":1,\"a\":[]}\n"})
    EXPECT_ANY_THROW(parse_metrics(text, "metrics.jsonl")) << text;
}

}  // namespace
}  // namespace sb::test
