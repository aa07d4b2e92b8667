#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/replace_file.h"
#include "expect.h"
#include "faulty_file_system.h"
#include "temporary_folder.h"

namespace sb {
namespace {

using test::FaultyFileSystem;
using test::TemporaryFolder;

constexpr size_t kNoLimit = size_t{1} << 40;
const std::string kBig(700'000, 'x');  // several buffers, so several writes

TEST(AtomicFile, ContainsWrittenBytesAfterCommit) {
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

// Processes with the same pid on different machines use different temporary names.
TEST(AtomicFile, TemporaryNameIdentifiesProcessAndMachine) {
  class : public FileSystem {
   public:
    int rename(const std::string& from, const std::string& to) override {
      from_ = from;
      return FileSystem::rename(from, to);
    }
    std::string from_;
  } files;
  const TemporaryFolder folder;
  write_file_atomically(folder.file("a"), "one", files);
  const std::string start = folder.file("a") + ".partial-" + std::to_string(::getpid()) + "-", end = "-0";
  ASSERT_EQ(files.from_.size(), start.size() + 8 + end.size()) << files.from_;
  EXPECT_TRUE(files.from_.starts_with(start) && files.from_.ends_with(end)) << files.from_;
  EXPECT_EQ(files.from_.substr(start.size(), 8).find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(AtomicFile, LeavesNothingWhenAbandoned) {
  const TemporaryFolder folder;
  FaultyFileSystem named(-1);
  named.unnamed_files = false;
  { AtomicFile(folder.file("a")).write(kBig); }
  { AtomicFile(folder.file("b"), named).write(kBig); }
  EXPECT_EQ(folder.entries(), 0U);
}

// A signal handler calls this before it exits.
TEST(AtomicFile, RemovesUnfinishedFilesAndKeepsCommittedOnes) {
  const TemporaryFolder folder;
  FaultyFileSystem named(-1);
  named.unnamed_files = false;
  write_file_atomically(folder.file("done"), "whole", named);
  write_file_atomically(folder.file("replaced"), "old", named);
  AtomicFile written(folder.file("written"), named), prepared(folder.file("prepared")), late(folder.file("replaced"));
  written.write(kBig);
  prepared.prepare();
  late.prepare();
  EXPECT_EQ(folder.entries(), 5U);
  remove_unfinished_files();
  EXPECT_EQ(folder.entries(), 2U);
  EXPECT_EQ(read_file(folder.file("done"), kNoLimit), "whole");
  EXPECT_EQ(read_file(folder.file("replaced"), kNoLimit), "old");
}

TEST(AtomicFile, WritesMoreFilesThanCleanupTracks) {
  const TemporaryFolder folder;
  FaultyFileSystem named(-1);
  named.unnamed_files = false;
  std::vector<std::unique_ptr<AtomicFile>> many;
  for (int i = 0; i < 50; ++i) many.push_back(std::make_unique<AtomicFile>(folder.file(std::to_string(i)), named));
  for (const auto& file : many) file->commit();
  remove_unfinished_files();
  EXPECT_EQ(folder.entries(), 50U);
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

TEST(AtomicFile, SurvivesFailureOfAnyCall) {
  for (const int error : {ENOSPC, EIO}) {
    for (const bool unnamed : {true, false}) {
      for (const bool exists : {true, false}) fail_every_call(error, FaultyFileSystem::Fault::error, unnamed, exists);
    }
  }
}

TEST(AtomicFile, ContinuesAfterShortOrInterruptedWrite) {
  fail_every_call(ENOSPC, FaultyFileSystem::Fault::short_write, true, true);
  const TemporaryFolder folder;
  for (const int call : {1, 2, 3}) {  // two writes and the sync, by then of the large piece and the tail
    FaultyFileSystem interrupted(call, EINTR);
    AtomicFile file(folder.file("a"), interrupted);
    file.write(kBig);
    file.write("tail");
    file.commit();
    EXPECT_TRUE(interrupted.failed());
    EXPECT_EQ(read_file(folder.file("a"), kNoLimit), kBig + "tail");
  }
}

TEST(AtomicFile, KeepsASymbolicLinkAndReplacesItsTarget) {
  const TemporaryFolder folder;
  write_file_atomically(folder.file("real"), "old");
  std::filesystem::create_symlink(folder.file("real"), folder.file("link"));
  write_file_atomically(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_file(folder.file("real"), kNoLimit), "new");
}

TEST(AtomicFile, ReplacesLinkOrPipeOnRequest) {
  const TemporaryFolder folder;
  write_file_atomically(folder.file("real"), "old");
  std::filesystem::create_symlink(folder.file("real"), folder.file("link"));
  std::filesystem::create_symlink("absent", folder.file("nowhere"));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const char* name : {"link", "nowhere", "pipe"}) {
    replace_file(folder.file(name), "new");
    EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(folder.file(name)))) << name;
    EXPECT_EQ(read_file(folder.file(name), kNoLimit), "new");
  }
  EXPECT_EQ(read_file(folder.file("real"), kNoLimit), "old");
  EXPECT_EQ(folder.entries(), 4U);
}

TEST(AtomicFile, CreatesTargetOfDanglingLink) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("absent", folder.file("link"));
  write_file_atomically(folder.file("link"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_EQ(read_file(folder.file("absent"), kNoLimit), "new");
}

TEST(AtomicFile, RejectsCircularLinks) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("b", folder.file("a"));
  std::filesystem::create_symlink("a", folder.file("b"));
  std::filesystem::create_symlink("self", folder.file("self"));
  for (const char* name : {"a", "b", "self"}) {
    EXPECT_TRUE(has(error_line([&] { write_file_atomically(folder.file(name), "new"); }, Exit::cannot_write),
                    folder.file(name)));
    EXPECT_TRUE(std::filesystem::is_symlink(folder.file(name))) << "the link was replaced";
  }
  EXPECT_EQ(folder.entries(), 3U);
}

// Remembers the pieces that were handed to write().
class RecordingFileSystem : public FileSystem {
 public:
  struct Piece {
    const char* data;
    size_t size;
  };
  std::vector<Piece> pieces;
  ssize_t write(int fd, const void* data, size_t size) override {
    pieces.push_back({static_cast<const char*>(data), size});
    return FileSystem::write(fd, data, size);
  }
};

TEST(AtomicFile, WritesLargeBlocksWithoutCopying) {
  const TemporaryFolder folder;
  const std::string large(40 << 20, 'y');
  RecordingFileSystem files;
  AtomicFile file(folder.file("a"), files);
  file.write("head");
  file.write(large);
  file.write("tail");
  file.commit();
  size_t in_place = 0;
  for (const auto& piece : files.pieces)
    if (piece.data >= large.data() && piece.data + piece.size <= large.data() + large.size()) in_place += piece.size;
  EXPECT_EQ(in_place, large.size());
  EXPECT_EQ(read_file(folder.file("a"), kNoLimit), "head" + large + "tail");
}

TEST(AtomicFile, PreparedFilesAppearOnlyWhenCommitted) {
  const TemporaryFolder folder;
  {
    AtomicFile abandoned(folder.file("a"));
    abandoned.write("x");
    abandoned.prepare();
    EXPECT_FALSE(std::filesystem::exists(folder.file("a")));
    EXPECT_THROW(abandoned.write("more"), Error);
  }
  EXPECT_EQ(folder.entries(), 0U);
  AtomicFile kept(folder.file("b"));
  kept.write("y");
  kept.prepare();
  kept.commit();
  EXPECT_EQ(read_file(folder.file("b"), 1), "y");
  EXPECT_THROW(kept.commit(), Error);
}

TEST(AtomicFile, WritesToADeviceWithoutReplacingIt) {
  write_file_atomically("/dev/null", "gone");
  EXPECT_FALSE(std::filesystem::is_regular_file("/dev/null"));
}

TEST(AtomicFile, RejectsFoldersAndMissingParents) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path(), folder.file("no/such/folder"), std::string()}) {
    EXPECT_NE(error_line([&] { AtomicFile file(path); }, Exit::cannot_write), "");
  }
}

TEST(AtomicFile, CannotBeUsedAfterCommit) {
  const TemporaryFolder folder;
  AtomicFile file(folder.file("a"));
  file.commit();
  EXPECT_THROW(file.write("more"), Error);
  EXPECT_THROW(file.commit(), Error);
}

TEST(ReadFile, RejectsMissingUnreadableOrTooLongFiles) {
  const TemporaryFolder folder;
  write_file_atomically(folder.file("a"), "12345");
  EXPECT_EQ(read_file(folder.file("a"), 5), "12345");
  for (const std::string& path : {folder.file("a"), folder.file("missing"), folder.path()}) {
    EXPECT_TRUE(has(error_line([&] { static_cast<void>(read_file(path, 4)); }), path));
  }
}

// A plain open or read would block forever on each of these.
TEST(ReadFile, RejectsPipesDevicesAndFoldersWithoutBlocking) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  for (const std::string& path :
       {folder.file("pipe"), std::string("/dev/zero"), std::string("/dev/tty"), folder.path()})
    EXPECT_THROW(static_cast<void>(read_file(path, kNoLimit)), Error) << path;
  EXPECT_THROW(static_cast<void>(read_file_or_pipe("/dev/zero", 100)), Error);
  EXPECT_THROW(static_cast<void>(read_file_or_pipe(folder.file("pipe"), 100, 0.05)), Error);
}

TEST(ReadFile, RejectsHugeFileBeforeReadingIt) {
  const TemporaryFolder folder;
  write_file_atomically(folder.file("a"), "");
  std::filesystem::resize_file(folder.file("a"), uint64_t{1} << 40);
  EXPECT_THROW(static_cast<void>(read_file(folder.file("a"), 1 << 20)), Error);
}

TEST(ReadFile, ReadsPipeToItsEndOrLimit) {
  for (const size_t size : {size_t{0}, size_t{5}, size_t{300'000}}) {
    const std::string sent(size, 'p');
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::thread writer([&] {
      for (size_t done = 0; done < sent.size();) {
        const ssize_t wrote = ::write(ends[1], sent.data() + done, sent.size() - done);
        if (wrote < 0) break;
        done += static_cast<size_t>(wrote);
      }
      ::close(ends[1]);
    });
    EXPECT_EQ(read_file_or_pipe("/dev/fd/" + std::to_string(ends[0]), 300'000), sent);
    writer.join();
    ::close(ends[0]);
  }
  const TemporaryFolder folder;
  write_file_atomically(folder.file("a"), "12345");
  EXPECT_EQ(read_file_or_pipe(folder.file("a"), 5), "12345");
  EXPECT_THROW(static_cast<void>(read_file_or_pipe(folder.file("absent"), 5)), Error);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "123456", 6), 6);
  EXPECT_THROW(static_cast<void>(read_file_or_pipe("/dev/fd/" + std::to_string(ends[0]), 5)), Error);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace sb
