#include "base/npz.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "base/error.h"
#include "base/file.h"
#include "expect.h"
#include "temporary_folder.h"

namespace sb {
namespace {

class StringSink : public ByteSink {
 public:
  void write(const void* data, size_t size) override { bytes.append(static_cast<const char*>(data), size); }
  std::string bytes;
};

std::string two_arrays() {
  StringSink sink;
  NpzWriter npz(sink);
  const std::vector<int16_t> grid = {1, 2, 3, -4, 5, 6};
  npz.begin_array<int16_t>("grid", {2, 3});
  npz.write(grid.data(), 4);
  npz.write(grid.data() + 4, 2);
  npz.array("line", std::vector<double>{0.5, 1e300});
  npz.array("none", std::vector<int64_t>{});
  npz.finish();
  return sink.bytes;
}

TEST(Npz, IsAZipWhoseDirectoryNamesEveryMember) {
  const std::string bytes = two_arrays();
  EXPECT_EQ(bytes.substr(0, 4), "PK\x03\x04");
  EXPECT_EQ(bytes.substr(bytes.size() - 22, 4), std::string("PK\x05\x06"));
  EXPECT_EQ(static_cast<int>(bytes[bytes.size() - 12]), 3) << "members in the end record";
  for (const char* name : {"grid.npy", "line.npy", "none.npy"}) EXPECT_NE(bytes.find(name), std::string::npos);
  EXPECT_EQ(bytes, two_arrays()) << "equal arrays give equal bytes";
}

TEST(Npz, AlignsDataLikeNumpy) {
  const std::string bytes = two_arrays();
  const size_t header = bytes.find("\x93NUMPY");
  const size_t length = static_cast<unsigned char>(bytes[header + 8]);
  EXPECT_EQ((10 + length) % 64, 0U);
  EXPECT_EQ(bytes[header + 10 + length - 1], '\n');
  EXPECT_NE(bytes.find("'shape': (2, 3)"), std::string::npos);
  EXPECT_NE(bytes.find("'shape': (2, )"), std::string::npos);
}

TEST(Npz, OpensInNumpy) {
  const char* python = nullptr;
  for (const char* candidate : {"python3", "/usr/bin/python3"}) {
    if (std::system((std::string(candidate) + " -c 'import numpy' 2>/dev/null").c_str()) == 0) python = candidate;
  }
  if (python == nullptr) GTEST_SKIP() << "no numpy on this machine";
  const test::TemporaryFolder folder;
  write_file_atomically(folder.file("a.npz"), two_arrays());
  const std::string script =
      " -c 'import numpy, sys, zipfile; assert zipfile.ZipFile(sys.argv[1]).testzip() is None;"
      "a = numpy.load(sys.argv[1]); assert a[\"grid\"].tolist() == [[1, 2, 3], [-4, 5, 6]];"
      "assert a[\"line\"].tolist() == [0.5, 1e300]; assert a[\"none\"].shape == (0,)' ";
  EXPECT_EQ(std::system((python + script + folder.file("a.npz")).c_str()), 0);
}

TEST(Npz, RejectsArraysTooLargeForZip) {
  StringSink sink;
  NpzWriter npz(sink);
  for (const auto& shape : std::vector<std::vector<uint64_t>>{{1ULL << 32}, {1ULL << 40, 1ULL << 40}}) {
    EXPECT_NE(error_line([&] { npz.begin_array<double>("a", shape); }), "");
  }
  EXPECT_TRUE(sink.bytes.empty());
}

TEST(Npz, RequiresExactlyTheDataOfTheShape) {
  StringSink sink;
  NpzWriter npz(sink);
  const std::vector<int32_t> data(3);
  npz.begin_array<int32_t>("a", {2});
  EXPECT_THROW(npz.write(data.data(), 3), std::logic_error);
  EXPECT_THROW(npz.finish(), std::logic_error);
}

}  // namespace
}  // namespace sb
