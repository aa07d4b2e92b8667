// Locks between processes that die, sleep, wake, and live on machines we cannot see.
#include "store/run_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>
#include <set>
#include <thread>

#include "../base/expect.h"
#include "../base/temporary_folder.h"
#include "base/file.h"
#include "toy_run.h"

namespace sb::test {
namespace {

namespace fs = std::filesystem;
using Milliseconds = std::chrono::milliseconds;

class RunLocks : public ::testing::Test {
 protected:
  RunLocks() { ::setenv("SELECTIVBENCH_HEARTBEAT", "0.02", 1); }
  ~RunLocks() override { ::unsetenv("SELECTIVBENCH_HEARTBEAT"); }

  std::string lock() const { return root_.file("lock"); }
  void put(const LockRecord& record) const { write_file_atomically(lock(), lock_text(record)); }
  // Why it cannot be taken at once; empty: it was, and was given back.
  std::string refused(LockWatch* watch = nullptr) const {
    return error_line([&] { const RunLock taken(lock(), watch); }, Exit::stopped);
  }
  size_t entries() const { return root_.entries(); }
  TemporaryFolder root_;
};

LockRecord of_another_machine() {
  LockRecord record = own_record();
  record.place = "another machine";
  record.host = "faraway";
  return record;
}

TEST_F(RunLocks, RecordRoundTripsAndKeepsItsLength) {
  LockRecord record = own_record();
  EXPECT_EQ(record.process, ::getpid());
  EXPECT_GT(record.started, 0U);
  EXPECT_EQ(look_for(record), Holder::there);
  const std::string text = lock_text(record);
  record.heartbeat_count = 1234567890123;
  record.held = false;
  EXPECT_EQ(lock_text(record).size(), text.size());
  const auto read = parse_lock(lock_text(record));
  ASSERT_TRUE(read);
  EXPECT_EQ(lock_text(*read), lock_text(record));
  for (size_t size = 0; size + 1 < text.size(); ++size) EXPECT_FALSE(parse_lock(text.substr(0, size))) << size;
  for (const char* broken : {"token x", "process -1", "process 1x", "every 0", "every nan", "state open", "beats -1"}) {
    const std::string key = std::string(broken).substr(0, std::string(broken).find(' ') + 1);
    std::string other = text;
    const size_t at = other.find("\n" + key) + 1;
    other.replace(at, other.find('\n', at) - at, broken);
    EXPECT_FALSE(parse_lock(other)) << broken;
  }
}

TEST_F(RunLocks, RejectInvalidHeartbeat) {
  for (const char* value : {"0", "-1", "3601", "soon", "nan", "1s"}) {
    ::setenv("SELECTIVBENCH_HEARTBEAT", value, 1);
    EXPECT_THROW(beat_seconds(), Error) << value;
  }
  ::setenv("SELECTIVBENCH_HEARTBEAT", "", 1);
  EXPECT_EQ(beat_seconds(), 10);
}

TEST_F(RunLocks, NameTheirHolder) {
  {
    const RunLock held(lock());
    EXPECT_NO_THROW(held.check());
    EXPECT_EQ(lock_is_held(lock()), true);
    const std::string line = refused();
    EXPECT_NE(line.find("process " + std::to_string(::getpid()) + " on "), std::string::npos) << line;
    EXPECT_NE(line.find(" since 2"), std::string::npos) << line;
    EXPECT_EQ(lock_record(lock())->process, ::getpid());
  }
  EXPECT_EQ(lock_is_held(lock()), false);
  EXPECT_EQ(refused(), "") << "given back";
  EXPECT_EQ(entries(), 1U) << "nothing lies beside it";
}

TEST_F(RunLocks, IncrementHeartbeat) {
  const RunLock held(lock());
  const uint64_t before = lock_record(lock())->heartbeat_count;
  for (int tries = 0; tries < 500 && lock_record(lock())->heartbeat_count < before + 3; ++tries)
    std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_GE(lock_record(lock())->heartbeat_count, before + 3);
  EXPECT_FALSE(held.lost());
}

TEST_F(RunLocks, AreFreeIfHolderWasKilled) {
  ASSERT_EQ(in_child([&] {
              const RunLock held(lock());
              ::kill(::getpid(), SIGKILL);
            }),
            128 + SIGKILL);
  EXPECT_EQ(lock_is_held(lock()), false);
  EXPECT_EQ(refused(), "");
}

TEST_F(RunLocks, AreFreeIfPidWasReused) {
  LockRecord record = own_record();
  record.started += 1;
  put(record);
  EXPECT_EQ(refused(), "");
}

TEST_F(RunLocks, OfOtherMachinesAreTakenOnlyAfterMissedHeartbeats) {
  LockRecord record = of_another_machine();
  put(record);
  EXPECT_EQ(lock_is_held(lock()), std::nullopt);
  EXPECT_NE(refused().find("on faraway"), std::string::npos) << "whoever does not look twice cannot know";
  LockWatch watch;
  std::chrono::steady_clock::time_point began;
  for (int i = 0; i < 60; ++i) {  // three times as long as is waited for
    ++record.heartbeat_count;
    put(record);
    began = std::chrono::steady_clock::now();  // seen to beat then, and never again
    EXPECT_NE(refused(&watch), "") << i;
    std::this_thread::sleep_for(Milliseconds(6));
  }
  EXPECT_TRUE(watch.beating());
  while (!refused(&watch).empty()) std::this_thread::sleep_for(Milliseconds(1));
  EXPECT_GE(std::chrono::steady_clock::now() - began, Milliseconds(119));
}

// After a machine slept with all its processes, the first observation proves nothing.
TEST_F(RunLocks, UnobservedTimeDoesNotCountAsMissedHeartbeats) {
  put(of_another_machine());
  LockWatch watch;
  EXPECT_NE(refused(&watch), "");
  std::this_thread::sleep_for(Milliseconds(200));
  EXPECT_NE(refused(&watch), "");
}

TEST_F(RunLocks, UseHeartbeatIntervalOfHolder) {
  LockRecord record = of_another_machine();
  record.heartbeat_seconds = 3600;
  put(record);
  LockWatch watch;
  for (int i = 0; i < 40; ++i) {
    EXPECT_NE(refused(&watch), "");
    std::this_thread::sleep_for(Milliseconds(6));
  }
}

TEST_F(RunLocks, UnreadableRecordsExpire) {
  for (const std::string& text : {std::string(), lock_text(own_record()).substr(0, 40), std::string(5000, 'x')}) {
    write_file_atomically(lock(), text);
    LockWatch watch;
    EXPECT_NE(refused(&watch), "") << "it may be about to be written";
    while (!refused(&watch).empty()) std::this_thread::sleep_for(Milliseconds(1));
  }
}

TEST_F(RunLocks, ResumedHolderFindsLockTakenAndWritesNothing) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t sleeper = ::fork();
  if (sleeper == 0) {
    const RunLock held(lock());
    FencedFiles files(real_file_system(), held);
    ::write(ready[1], "x", 1);
    ::raise(SIGSTOP);
    try {
      write_file_atomically(root_.file("result.json"), "of the sleeper", files);
    } catch (const Error& error) {
      const bool says = std::string(error.what()).find("was taken over by process ") != std::string::npos;
      ::_exit(says ? static_cast<int>(error.code()) : 1);
    }
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  {
    LockWatch watch;
    std::optional<RunLock> mine;
    for (int tries = 0; !mine && tries < 5000; ++tries) {
      try {
        mine.emplace(RunLock(lock(), &watch));
      } catch (const Error&) {
        std::this_thread::sleep_for(Milliseconds(1));
      }
    }
    ASSERT_TRUE(mine);
    ::kill(sleeper, SIGCONT);
    int status = 0;
    ASSERT_EQ(::waitpid(sleeper, &status, 0), sleeper);
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Exit::taken_over));
    EXPECT_NO_THROW(mine->check()) << "giving back what is lost takes nothing from its new holder";
    EXPECT_FALSE(fs::exists(root_.file("result.json")));
  }
  EXPECT_EQ(entries(), 1U);
}

// Falls asleep after its check, just before a file takes its name.
class SleepyFiles : public FileSystem {
 public:
  explicit SleepyFiles(std::string name) : name_(std::move(name)) {}
  int rename(const std::string& from, const std::string& to) override {
    if (to.ends_with(name_)) ::raise(SIGSTOP);
    return FileSystem::rename(from, to);
  }

 private:
  std::string name_;
};

// A process that works on the run until `Files` put it to sleep over the file of this name.
template <class Files>
void fall_asleep(const std::string& root, const std::string& name, pid_t& sleeper) {
  sleeper = ::fork();
  if (sleeper == 0) {
    try {
      ToyRun().run(root, Files(name));
    } catch (const Error& error) {
      ::_exit(static_cast<int>(error.code()));
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(sleeper, &status, WUNTRACED), sleeper);
  ASSERT_TRUE(WIFSTOPPED(status)) << name;
}

TEST_F(RunLocks, HolderSuspendedBeforeRenameCannotRename) {
  const std::string folder = root_.file(toy_config().run_id);
  for (const std::string name : {"metrics.jsonl", "checkpoint-00000004.safetensors", "result.json"}) {
    pid_t sleeper = 0;
    ASSERT_NO_FATAL_FAILURE(fall_asleep<SleepyFiles>(root_.path(), name, sleeper));
    int status = 0;
    LockWatch watch;
    for (bool done = false; !done; std::this_thread::sleep_for(Milliseconds(1))) {
      try {
        ToyRun().run(root_.path(), ScriptedFileSystem(), &watch);
        done = true;
      } catch (const Error& error) {
        ASSERT_EQ(error.code(), Exit::stopped) << error.what();
      }
    }
    const std::string before = read_file(folder + "/result.json", 1 << 20);
    ::kill(sleeper, SIGCONT);
    ASSERT_EQ(::waitpid(sleeper, &status, 0), sleeper);
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Exit::taken_over)) << name;
    EXPECT_EQ(read_file(folder + "/result.json", 1 << 20), before);
    EXPECT_EQ(inspect_run(folder).problems, std::vector<std::string>{});
    for (const auto& entry : fs::directory_iterator(folder))
      EXPECT_EQ(entry.path().string().find(".partial-"), std::string::npos) << entry.path();
    fs::remove_all(folder);
  }
}

// A file that goes is gone: no look at the lock comes between the last one and the removal.
class SleepyRemoval : public FileSystem {
 public:
  explicit SleepyRemoval(std::string name) : name_(std::move(name)) {}
  int remove(const std::string& path) override {
    if (path.ends_with(name_)) ::raise(SIGSTOP);
    return FileSystem::remove(path);
  }

 private:
  std::string name_;
};

TEST_F(RunLocks, HolderSuspendedBeforeRemovalRemovesOnlyThatFile) {
  const std::string folder = root_.file(toy_config().run_id);
  for (const std::string name : {"checkpoint-00000002.safetensors", "result.json", "failed.txt"}) {
    fs::create_directories(folder);
    if (name != "checkpoint-00000002.safetensors") write_file_atomically(folder + "/" + name, "of before");
    pid_t sleeper = 0;
    ASSERT_NO_FATAL_FAILURE(fall_asleep<SleepyRemoval>(root_.path(), name, sleeper));
    int status = 0;
    const auto finished = [&] {
      LockWatch watch;
      while (true) {
        try {
          return ToyRun().run(root_.path(), ScriptedFileSystem(), &watch);
        } catch (const Error& error) {
          ASSERT_EQ(error.code(), Exit::stopped) << error.what();
        }
        std::this_thread::sleep_for(Milliseconds(1));
      }
    };
    finished();
    if (name == "failed.txt") write_file_atomically(folder + "/" + name, "of the next attempt");
    std::set<std::string> before, after;
    const auto listed = [&](std::set<std::string>& out) {
      for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename().string());
    };
    listed(before);
    const std::string result = read_file(folder + "/result.json", 1 << 20);
    ::kill(sleeper, SIGCONT);
    ASSERT_EQ(::waitpid(sleeper, &status, 0), sleeper);
    // Who has nothing to write any more finds the run done.
    EXPECT_EQ(WEXITSTATUS(status), name == "failed.txt" ? 0 : static_cast<int>(Exit::taken_over)) << name;
    listed(after);
    before.erase(name);
    EXPECT_EQ(after, before) << name;
    finished();  // what is gone is made again, with the same numbers
    EXPECT_EQ(inspect_run(folder).problems, std::vector<std::string>{}) << name;
    const auto numbers = [](const std::string& text) { return text.substr(text.find("numbers_sha256"), 90); };
    EXPECT_EQ(numbers(read_file(folder + "/result.json", 1 << 20)), numbers(result)) << name;
    fs::remove_all(folder);
  }
}

// One that slept before it looked for what a dead holder left finds what its taker is writing.
class SleepyListing : public FileSystem {
 public:
  int remove(const std::string& path) override {
    if (path.ends_with("odd")) ::raise(SIGSTOP);
    return FileSystem::remove(path);
  }
};

TEST_F(RunLocks, ResumedHolderKeepsPendingFilesOfNewOwner) {
  const std::string folder = root_.file(toy_config().run_id);
  fs::create_directories(folder);
  ASSERT_EQ(::mkfifo((folder + "/odd").c_str(), 0600), 0);  // removed just before
  const pid_t sleeper = ::fork();
  if (sleeper == 0) {
    try {
      ToyRun().run(root_.path(), SleepyListing());
    } catch (const Error& error) {
      ::_exit(static_cast<int>(error.code()));
    }
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(sleeper, &status, WUNTRACED), sleeper);
  ASSERT_TRUE(WIFSTOPPED(status));
  LockWatch watch;
  std::optional<RunLock> taker;
  while (!taker) {
    try {
      taker.emplace(folder + "/lock", &watch);
    } catch (const Error&) {
      std::this_thread::sleep_for(Milliseconds(1));
    }
  }
  write_file_atomically(folder + "/result.json.partial-1", "about to take its name");
  ::kill(sleeper, SIGCONT);
  ASSERT_EQ(::waitpid(sleeper, &status, 0), sleeper);
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Exit::taken_over));
  EXPECT_TRUE(fs::exists(folder + "/result.json.partial-1"));
}

// The waiting process is asked to stop while another machine holds the lock for hours.
TEST_F(RunLocks, WaitingProcessStopsOnRequest) {
  LockRecord record = of_another_machine();
  record.heartbeat_seconds = 3600;
  put(record);
  int asked = 0;
  const auto wait = [&] { wait_for_lock(lock(), 3600, [&] { return ++asked == 3; }); };
  EXPECT_TRUE(has(error_line(wait, Exit::stopped), "is held by process"));
  EXPECT_EQ(asked, 3);
  LockWatch watch;
  EXPECT_NE(refused(&watch), "");
  EXPECT_EQ(watch.proof(), 6 * 3600) << "by the beat of the holder, whatever that of who waits is";
}

TEST_F(RunLocks, AreLostIfRemoved) {
  const RunLock held(lock());
  fs::remove(lock());
  EXPECT_TRUE(has(error_line([&] { held.check(); }, Exit::taken_over), "is gone"));
}

// A new owner that died between following a token and renaming its file leaves a chain.
TEST_F(RunLocks, FollowChainToItsEnd) {
  LockRecord first = own_record(), second = own_record(), third = own_record();
  first.held = false;
  second.started += 1;
  put(first);
  write_file_atomically(lock() + ".next-" + first.token, lock_text(second));
  {
    const RunLock held(lock());
    EXPECT_NE(refused(), "");
    EXPECT_EQ(entries(), 1U);
  }
  put(first);
  write_file_atomically(lock() + ".next-" + first.token, lock_text(second));
  write_file_atomically(lock() + ".next-" + second.token, lock_text(third));
  EXPECT_NE(refused(), "") << "the last one lives";
}

TEST_F(RunLocks, AreHeldByOneThreadAtATime) {
  ::setenv("SELECTIVBENCH_HEARTBEAT", "10", 1);  // a thread that has to wait for a processor is not dead
  std::atomic<int> inside = 0, most = 0, times = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) {
        const RunLock held = wait_for_lock(lock(), 60, [] { return false; });
        most = std::max(most.load(), ++inside);
        held.check();
        ++times;
        --inside;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(times, 160);
  EXPECT_EQ(most, 1);
  EXPECT_EQ(entries(), 1U);
}

// Writes down each result that took its name, and is slow enough to be met in the middle.
class CountingFiles : public FileSystem {
 public:
  explicit CountingFiles(std::string log) : log_(std::move(log)) {}
  int sync(int) override { return 0; }
  int sync_folder(const std::string&) override { return 0; }
  int rename(const std::string& from, const std::string& to) override {
    ::usleep(1000 * (static_cast<unsigned>(::getpid()) % 5));
    const int done = FileSystem::rename(from, to);
    if (done == 0 && to.ends_with("result.json")) {
      const int fd = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      ::write(fd, "x", 1);
      ::close(fd);
    }
    return done;
  }

 private:
  std::string log_;
};

// Until the run is done, by whoever; a process of its own.
[[noreturn]] void work_until_done(const std::string& root, const std::string& log) {
  for (LockWatch watch;;) {
    try {
      ToyRun().run(root, CountingFiles(log), &watch);
      ::_exit(0);
    } catch (const Error& error) {
      if (error.code() == Exit::taken_over) continue;
      if (error.code() != Exit::stopped) {
        ::fprintf(stderr, "%s\n", error.what());
        ::_exit(1);
      }
      ::usleep(2000);
    }
  }
}

TEST_F(RunLocks, KilledAndSuspendedProcessesMakeOneResult) {
  TemporaryFolder clean;
  ToyRun().run(clean.path());
  const auto bytes_of = [](const std::string& root) {
    std::string all;
    for (const char* name : {"/config.json", "/metrics.jsonl", "/final.safetensors"})
      all += read_file(root + "/" + toy_config().run_id + name, 1 << 20);
    return all + comparable_text(load_result(root + "/" + toy_config().run_id));
  };
  std::mt19937 random(7);
  int kills = 0, sleeps = 0;
  for (int trial = 0; trial < 5; ++trial) {
    TemporaryFolder root;
    const std::string log = root.file("results");
    std::vector<pid_t> crew(16, 0);
    const auto start = [&](pid_t& member) {
      member = ::fork();
      if (member == 0) work_until_done(root.path(), log);
    };
    for (auto& member : crew) start(member);
    std::map<pid_t, std::chrono::steady_clock::time_point> asleep;
    const auto begun = std::chrono::steady_clock::now();
    const auto over = [&] { return std::chrono::steady_clock::now() - begun > Milliseconds(1500); };
    size_t working = crew.size();
    while (working > 0) {
      std::this_thread::sleep_for(Milliseconds(5));
      // Whoever holds the run is the one to meet.
      const auto holder = lock_record(root.file(toy_config().run_id) + "/lock");
      pid_t& member = crew[random() % crew.size()];
      const pid_t aimed = holder && random() % 2 == 0 ? static_cast<pid_t>(holder->process) : member;
      if (!over() && aimed > 0 && std::find(crew.begin(), crew.end(), aimed) != crew.end()) {
        if (random() % 2 == 0) {
          ++kills;
          ::kill(aimed, SIGKILL);
        } else if (!asleep.contains(aimed)) {
          ++sleeps;
          ::kill(aimed, SIGSTOP);
          asleep[aimed] = std::chrono::steady_clock::now() + Milliseconds(200);
        }
      }
      for (auto it = asleep.begin(); it != asleep.end();) {
        if (std::chrono::steady_clock::now() < it->second) {
          ++it;
          continue;
        }
        ::kill(it->first, SIGCONT);
        it = asleep.erase(it);
      }
      for (auto& each : crew) {
        int status = 0;
        if (each == 0 || ::waitpid(each, &status, WNOHANG) != each) continue;
        asleep.erase(each);
        EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
        each = 0;
        if (WIFSIGNALED(status))
          start(each);
        else
          --working;
      }
    }
    EXPECT_EQ(bytes_of(root.path()), bytes_of(clean.path()));
    EXPECT_EQ(inspect_run(root.file(toy_config().run_id)).problems, std::vector<std::string>{});
    std::error_code none;  // who was killed after the rename wrote nothing down
    EXPECT_LE(fs::exists(log) ? fs::file_size(log, none) : 0, 1U);
  }
  EXPECT_GT(kills, 20);
  EXPECT_GT(sleeps, 20);
}

}  // namespace
}  // namespace sb::test
