#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "faulty_file_system.h"
#include "temporary_folder.h"

namespace sb {
namespace {

using test::FaultyFileSystem;
using test::TemporaryFolder;

constexpr size_t kNoLimit = size_t{1} << 40;
const std::string kBig(700'000, 'x');  // several buffers, so several writes

TEST(AtomicFile, HoldsWhatWasWrittenOnceCommitted) {
  const TemporaryFolder folder;
  AtomicFile file(folder.file("a"));
  file.write("one ");
  file.write(kBig);
  EXPECT_EQ(folder.entries(), 0U) << "nothing may be visible before commit";
  file.commit();
  EXPECT_EQ(read_file(folder.file("a"), kNoLimit), "one " + kBig);
  EXPECT_EQ(file.bytes(), 4 + kBig.size());
  EXPECT_EQ(folder.entries(), 1U);
}

TEST(AtomicFile, LeavesNothingWhenAbandoned) {
  const TemporaryFolder folder;
  FaultyFileSystem named(-1);
  named.unnamed_files = false;
  { AtomicFile(folder.file("a")).write(kBig); }
  { AtomicFile(folder.file("b"), named).write(kBig); }
  EXPECT_EQ(folder.entries(), 0U);
}

// For every N: fail the Nth call. The target then holds the old content or the new, never a mixture, and no temporary
// stays.
void fail_every_call(int error, FaultyFileSystem::Fault fault, bool unnamed, bool target_exists) {
  for (int n = 0;; ++n) {
    const TemporaryFolder folder;
    const std::string target = folder.file("target");
    if (target_exists) write_file_atomically(target, "old");
    FaultyFileSystem files(n, error, fault);
    files.unnamed_files = unnamed;
    bool threw = false;
    try {
      write_file_atomically(target, kBig, files);
    } catch (const Error& problem) {
      threw = true;
      EXPECT_EQ(problem.code(), Exit::cannot_write);
      EXPECT_NE(std::string(problem.what()).find(target), std::string::npos) << problem.what();
    }
    if (!files.failed()) {
      EXPECT_FALSE(threw);
      EXPECT_GE(n, 6) << "the loop must have failed every kind of call";
      return;
    }
    const bool exists = std::filesystem::exists(target);
    if (!threw) {
      ASSERT_TRUE(exists);
      EXPECT_EQ(read_file(target, kNoLimit), kBig);
    } else if (exists) {
      const std::string content = read_file(target, kNoLimit);
      EXPECT_TRUE(content == kBig || (target_exists && content == "old")) << "call " << n;
    } else {
      EXPECT_FALSE(target_exists) << "the old file vanished at call " << n;
    }
    EXPECT_EQ(folder.entries(), exists ? 1U : 0U) << "a temporary stayed after call " << n;
  }
}

TEST(AtomicFile, SurvivesAFailureOfAnyCall) {
  for (const int error : {ENOSPC, EIO}) {
    for (const bool unnamed : {true, false}) {
      for (const bool exists : {true, false}) fail_every_call(error, FaultyFileSystem::Fault::error, unnamed, exists);
    }
  }
}

TEST(AtomicFile, CarriesOnAfterAShortOrInterruptedWrite) {
  fail_every_call(ENOSPC, FaultyFileSystem::Fault::short_write, true, true);
  const TemporaryFolder folder;
  FaultyFileSystem interrupted(1, EINTR);
  write_file_atomically(folder.file("a"), kBig, interrupted);
  EXPECT_TRUE(interrupted.failed());
  EXPECT_EQ(read_file(folder.file("a"), kNoLimit), kBig);
}

TEST(AtomicFile, KeepsASymbolicLinkAndReplacesItsTarget) {
  const TemporaryFolder folder;
  write_file_atomically(folder.file("real"), "old");
  std::filesystem::create_symlink(folder.file("real"), folder.file("link"));
  write_file_atomically(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_file(folder.file("real"), kNoLimit), "new");
}

TEST(AtomicFile, WritesToADeviceWithoutReplacingIt) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
}

TEST(AtomicFile, RefusesFoldersAndPlacesThatDoNotExist) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path(), folder.file("no/such/folder"), std::string()}) {
    try {
      AtomicFile file(path);
      FAIL() << path;
    } catch (const Error& problem) {
      EXPECT_EQ(problem.code(), Exit::cannot_write);
    }
  }
}

TEST(AtomicFile, CannotBeUsedAfterCommit) {
  const TemporaryFolder folder;
  AtomicFile file(folder.file("a"));
  file.commit();
  EXPECT_THROW(file.write("more"), Error);
  EXPECT_THROW(file.commit(), Error);
}

TEST(ReadFile, RefusesWhatIsMissingUnreadableOrTooLong) {
  const TemporaryFolder folder;
  write_file_atomically(folder.file("a"), "12345");
  EXPECT_EQ(read_file(folder.file("a"), 5), "12345");
  for (const std::string& path : {folder.file("a"), folder.file("missing"), folder.path()}) {
    try {
      static_cast<void>(read_file(path, 4));
      FAIL() << path;
    } catch (const Error& problem) {
      EXPECT_EQ(problem.code(), Exit::bad_input);
      EXPECT_NE(std::string(problem.what()).find(path), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace sb
