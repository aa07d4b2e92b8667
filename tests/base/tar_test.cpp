#include "base/tar.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "expect.h"
#include "temporary_folder.h"

namespace sb::test {
namespace {

std::string fault(const std::string& bytes, size_t most = 100) {
  return error_line([&] { parse_tar(bytes, "a.tar", most); });
}

// The header of the first file with its checksum made anew.
std::string changed(std::string bytes, size_t at, const std::string& text) {
  bytes.replace(at, text.size(), text);
  bytes.replace(148, 8, "        ");
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(bytes[i]);
  char digits[8];
  std::snprintf(digits, sizeof digits, "%06o", sum);
  bytes.replace(148, 7, std::string(digits, 7));
  return bytes;
}

const std::vector<TarFile> kFiles = {{"b/" + std::string(50, 'x') + "/" + std::string(90, 'y'), std::string(513, 'q')},
                                     {"a/one.json", "{}\n"},
                                     {"empty", ""}};

TEST(Tar, RoundTripsSortedWithReproducibleBytes) {
  const std::string bytes = tar_bytes(kFiles);
  EXPECT_EQ(bytes.size() % 512, 0U);
  const auto files = parse_tar(bytes, "a.tar", 3);
  ASSERT_EQ(files.size(), 3U);
  EXPECT_EQ(files[0].name, "a/one.json");
  EXPECT_EQ(files[1].name, kFiles[0].name);
  EXPECT_EQ(files[1].content, kFiles[0].content);
  EXPECT_EQ(files[2].content, "");
  EXPECT_EQ(tar_bytes({kFiles[2], kFiles[0], kFiles[1]}), bytes);
  EXPECT_EQ(tar_bytes(files), bytes);
}

TEST(Tar, IsInteroperableWithSystemTar) {
  TemporaryFolder folder;
  write_file_atomically(folder.file("a.tar"), tar_bytes(kFiles));
  ASSERT_EQ(std::system(("cd " + folder.path() +
                         " && tar -xf a.tar && tar --format=ustar -cf b.tar a b empty && tar -cf c.tar a empty")
                            .c_str()),
            0);
  EXPECT_EQ(read_file(folder.file("a/one.json"), 100), "{}\n");
  EXPECT_EQ(parse_tar(read_file(folder.file("b.tar"), 1 << 20), "b.tar", 3).size(), 3U);
  EXPECT_EQ(parse_tar(read_file(folder.file("c.tar"), 1 << 20), "c.tar", 3).size(), 2U) << "GNU's own format";
}

TEST(Tar, RejectsNamesOutsideTheArchive) {
  for (const char* name : {"", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\\b", "a\nb", "\xff"})
    EXPECT_FALSE(is_tar_name(name)) << name;
  EXPECT_FALSE(is_tar_name(std::string(101, 'x')));
  EXPECT_TRUE(is_tar_name(std::string(100, 'x')));
  EXPECT_TRUE(is_tar_name(std::string(155, 'x') + "/" + std::string(100, 'y')));
  EXPECT_FALSE(is_tar_name(std::string(156, 'x') + "/" + std::string(100, 'y')));
  EXPECT_THROW(tar_bytes({{"../x", ""}}), Error);
  EXPECT_THROW(tar_bytes({{"x", ""}, {"x", ""}}), Error);
}

TEST(Tar, ReportsHostileBytesInOneLine) {
  const std::string good = tar_bytes({{"one", "content"}, {"two", "x"}});
  EXPECT_EQ(fault(good), "");
  EXPECT_NE(fault(""), "");
  EXPECT_NE(fault("hello"), "");
  EXPECT_TRUE(has(fault(std::string(1024, 'x')), "checksum"));
  for (size_t cut = 0; cut < good.size(); cut += 100) EXPECT_NE(fault(good.substr(0, cut)), "") << cut;
  EXPECT_TRUE(has(fault(good + "x"), "zeros behind"));
  for (size_t i = 0; i < 512; ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    EXPECT_NE(fault(flipped), "") << i;
  }
  std::string behind = good;
  behind[512 + 100] = 'x';
  EXPECT_TRUE(has(fault(behind), "data after the end of a file"));
  EXPECT_TRUE(has(fault(changed(good, 0, "../")), "invalid file name"));
  EXPECT_TRUE(has(fault(changed(good, 0, "/ne")), "invalid file name"));
  for (const char* type : {"1", "2", "3", "4", "6", "x", "g", "L"})
    EXPECT_TRUE(has(fault(changed(good, 156, type)), "not a plain file")) << type;
  EXPECT_TRUE(has(fault(changed(good, 124, "77777777777")), "longer than the archive"));
  EXPECT_TRUE(has(fault(changed(good, 124, "-1         ")), "longer than the archive"));
  EXPECT_TRUE(has(fault(changed(good, 0, "two")), "twice"));
  EXPECT_TRUE(has(fault(good, 1), "at most 1 files"));
}

}  // namespace
}  // namespace sb::test
