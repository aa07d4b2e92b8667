#include "base/npy.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "expect.h"

namespace sb {
namespace {

std::string npy(const std::string& header, const std::string& values, char version = 1) {
  std::string out = std::string(kNpyMagic) + version + '\0';
  out += static_cast<char>(header.size());
  out.append(version == 1 ? 1 : 3, '\0');
  return out + header + values;
}

std::string header(const std::string& type, const std::string& order, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

std::string fault_of(const std::string& bytes) {
  return error_line([&] { parse_npy(bytes, "a.npy"); });
}

TEST(Npy, ReadsTypeShapeAndValues) {
  for (const char version : {'\1', '\2', '\3'}) {
    const std::string bytes = npy(header("<i4", "False", "(2, 1)"), "12345678", version);
    const NpyArray array = parse_npy(bytes, "a.npy");
    EXPECT_EQ(array.kind, 'i');
    EXPECT_EQ(array.width, 4);
    EXPECT_EQ(array.shape, (std::vector<uint64_t>{2, 1}));
    EXPECT_EQ(array.values, "12345678");
  }
  EXPECT_EQ(parse_npy(npy(header("|u1", "False", "(3,)"), "abc"), "a.npy").shape, (std::vector<uint64_t>{3}));
  EXPECT_TRUE(parse_npy(npy(header("<f8", "False", "()"), "12345678"), "a.npy").shape.empty()) << "a single number";
}

TEST(Npy, RejectsWhatIsNotAPlainArray) {
  const std::string good = header("<u2", "False", "(2,)");
  EXPECT_EQ(fault_of(""), "[npy] a.npy: not a NumPy array");
  EXPECT_EQ(fault_of("a longer text"), "[npy] a.npy: not a NumPy array");
  EXPECT_EQ(fault_of(npy(good, "1234").substr(0, 20)), "[npy] a.npy: its header is cut off");
  EXPECT_EQ(fault_of(npy(good, "123")), "[npy] a.npy: values, expected 4 bytes, got 3");
  EXPECT_EQ(fault_of(npy(good, "12345")), "[npy] a.npy: values, expected 4 bytes, got 5");
  EXPECT_EQ(fault_of(npy(header("<u2", "True", "(2,)"), "1234")), "[npy] a.npy: expected an array in C order");
  EXPECT_NE(fault_of(npy(header(">u2", "False", "(2,)"), "1234")).find("expected plain little-endian numbers"),
            std::string::npos);
  EXPECT_EQ(fault_of(npy(header("<u2", "False", "(2"), "1234")), "[npy] a.npy: its shape cannot be read");
  EXPECT_EQ(fault_of(npy(header("<u2", "False", "(-2,)"), "1234")), "[npy] a.npy: its shape cannot be read");
  EXPECT_EQ(fault_of(npy(header("<u2", "False", "(4294967296, 4294967296)"), "1234")),
            "[npy] a.npy: its shape is too large");
}

}  // namespace
}  // namespace sb
