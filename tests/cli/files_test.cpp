// What the program leaves on disk, whatever happens to it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/sha256.h"
#include "program_run.h"

namespace sb::test {
namespace {

using nlohmann::json;

TEST(Manifest, NamesProvenanceAndDigestsOfFile) {
  const TemporaryFolder folder;
  const std::string file = folder.file("s.jsonl");
  ASSERT_TRUE(exits(run(std::vector<std::string>{"generate", "--task", "2", "--split", "valid", "--start", "5",
                                                 "--count", "7", "--out", file} +
                        kSmall),
                    0));
  const json manifest = json::parse(whole_file(file + ".manifest.json"));
  const std::string content = whole_file(file);
  EXPECT_EQ(manifest["sha256"], sha256_hex(content));
  EXPECT_EQ(manifest["bytes"], content.size());
  EXPECT_EQ(manifest["samples"], 7);
  EXPECT_EQ(manifest["start"], 5);
  EXPECT_EQ(manifest["grammar"]["vocab"], 6);
  EXPECT_EQ(manifest["sequences"]["split"], "valid");
  EXPECT_EQ(manifest["task"]["train_gap"]["law"], "uniform");
  const std::vector<std::string> digest = {"generate", "--split", "valid", "--start", "5", "--count", "7", "--digest"};
  EXPECT_EQ(manifest["sha256_canon"].get<std::string>() + "\n", run(digest + kSmall).out);
  EXPECT_EQ(folder.entries(), 2U);
}

TEST(Npz, HasSameSamplesAsJsonlAndOpensInNumpy) {
  const char* python = nullptr;
  for (const char* candidate : {"python3", "/usr/bin/python3"}) {
    if (std::system((std::string(candidate) + " -c 'import numpy' 2>/dev/null").c_str()) == 0) python = candidate;
  }
  if (python == nullptr) GTEST_SKIP() << "no numpy on this machine";
  const TemporaryFolder folder;
  const std::vector<std::string> what =
      std::vector<std::string>{"generate", "--task", "3", "--gap-start", "0", "--start", "3", "--count", "9"} + kSmall;
  ASSERT_EQ(run(what + std::vector<std::string>{"--out", folder.file("a.jsonl")}).code, 0);
  ASSERT_EQ(run(what + std::vector<std::string>{"--format", "npz", "--out", folder.file("a.npz")}).code, 0);
  const std::string script =
      " -c 'import json, numpy, sys\n"
      "a = numpy.load(sys.argv[1])\n"
      "rows = [json.loads(line) for line in open(sys.argv[2])]\n"
      "assert len(rows) == 9\n"
      "for i, r in enumerate(rows):\n"
      "    assert a[\"index\"][i] == r[\"index\"]\n"
      "    for name in (\"classes\", \"states\", \"gaps\"): assert a[name][i].tolist() == r[name]\n"
      "    o = a[\"wrong_offsets\"]\n"
      "    assert a[\"wrong\"][o[i]:o[i + 1]].tolist() == r[\"wrong\"]\n' ";
  EXPECT_EQ(std::system((python + script + folder.file("a.npz") + " " + folder.file("a.jsonl")).c_str()), 0);
}

// A job of many seconds, ended while it is at work.
Outcome end_a_long_job(const TemporaryFolder& folder, int signal, const std::string& format) {
  Started job({"generate", "--count", "3000000", "--format", format, "--out", folder.file("s")});
  job.wait_until_it_watches_for_signals();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  job.signal(signal);
  return job.wait();
}

TEST(Interrupt, LeavesNoFilesAndReportsIt) {
  for (const int signal : {SIGINT, SIGTERM}) {
    for (const char* format : {"jsonl", "npz"}) {
      const TemporaryFolder folder;
      const Outcome outcome = end_a_long_job(folder, signal, format);
      EXPECT_EQ(outcome.code, 75) << outcome.err;
      EXPECT_EQ(outcome.err, "[stop] stopped; there was nothing to save\n");
      EXPECT_EQ(folder.entries(), 0U);
    }
  }
}

// The signals are sent before the program starts and handled before its libraries are initialised.
TEST(Interrupt, PendingSignalStopsProgramFirst) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR2}) {
    const auto pending = [number] {
      sigset_t set;
      sigemptyset(&set);
      sigaddset(&set, number);
      ::sigprocmask(SIG_BLOCK, &set, nullptr);
      ::raise(number);
    };
    const Outcome outcome = Started({"--version"}, pending).wait();
    EXPECT_EQ(outcome.code, 75) << number;
    EXPECT_EQ(outcome.out, "");
  }
}

TEST(Interrupt, StopsConstructionOfLargeGrammar) {
  const TemporaryFolder folder;
  for (const auto& command : std::vector<std::vector<std::string>>{{"grammar", "--json", folder.file("g")},
                                                                   {"generate", "--out", folder.file("s")},
                                                                   {"ceiling", "--json", folder.file("c")}}) {
    Started job(command + kLarge);
    EXPECT_TRUE(job.wait_until_it_has_worked_for(3)) << command.front();
    job.signal(SIGTERM);
    EXPECT_EQ(job.wait().code, 75) << command.front();
  }
  EXPECT_EQ(folder.entries(), 0U);
}

// A reader that does not read standard error must not block the exit.
TEST(Interrupt, StopsIfStandardErrorIsClosedOrFull) {
  for (const bool closed : {true, false}) {
    const auto full = [closed] {
      int ends[2];
      if (::pipe(ends) != 0) ::_exit(126);
      ::dup2(ends[1], 2);
      if (closed) {
        ::close(ends[0]);
        return;
      }
      ::fcntl(2, F_SETFL, O_NONBLOCK);
      const std::string some(4096, ' ');
      while (::write(2, some.data(), some.size()) > 0) {
      }
      ::fcntl(2, F_SETFL, 0);
    };
    Started job(std::vector<std::string>{"grammar"} + kLarge, full);
    EXPECT_TRUE(job.wait_until_it_has_worked_for(3));
    job.signal(SIGINT);
    EXPECT_EQ(job.wait().code, 75) << closed;
  }
}

TEST(Kill, LeavesNoOutputFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(end_a_long_job(folder, SIGKILL, "jsonl").code, -1);
  EXPECT_FALSE(std::filesystem::exists(folder.file("s")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("s.manifest.json")));
}

// A gzip file whose zeros unpack to this many times 16 MiB; its end is missing.
std::string zeros_by_16_mib(int times, const std::string& first = "") {
  const std::string zeros(size_t{1} << 24, '\0');
  std::string out;
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY);
  const auto add = [&](const std::string& content) {
    std::string packed(deflateBound(&stream, content.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
    stream.avail_in = static_cast<uInt>(content.size());
    stream.next_out = reinterpret_cast<Bytef*>(packed.data());
    stream.avail_out = static_cast<uInt>(packed.size());
    deflate(&stream, Z_FULL_FLUSH);
    packed.resize(packed.size() - stream.avail_out);
    return packed;
  };
  out += add(first.empty() ? std::string(512, '\0') : first);
  const std::string piece = add(zeros);  // behind a full flush: may be repeated
  deflateEnd(&stream);
  for (int i = 0; i < times; ++i) out += piece;
  return out;
}

TEST(Archive, RejectsGzipBombInLittleMemory) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a sanitizer's own memory is beyond every limit";
#endif
  TemporaryFolder folder;
  const auto checked = [&](const std::string& bytes, const std::string& refusal) {
    std::ofstream(folder.file("bomb.tar.gz"), std::ios::binary) << bytes;
    Started check({"check", folder.file("bomb.tar.gz")}, [] {
      const rlimit limit{size_t{768} << 20, size_t{768} << 20};  // libtorch alone takes up to 450 MiB of addresses
      ::setrlimit(RLIMIT_AS, &limit);
    });
    const Outcome outcome = check.wait();
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_NE(outcome.out.find(refusal), std::string::npos) << outcome.out << outcome.err;
  };
  std::string header(512, '\0');  // a file of 3 GB
  const auto put = [&](size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, "run/metrics.jsonl");
  put(124, "30000000000");
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  put(148, std::string(8, ' '));
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  char text[8];
  std::snprintf(text, sizeof text, "%06o", sum);
  put(148, std::string(text, 7) + " ");
  checked(zeros_by_16_mib(200), "expected at most 1073741824 bytes unpacked");
  checked(zeros_by_16_mib(200, header), "expected at most 1073741824 bytes unpacked");
  checked(zeros_by_16_mib(4, header), "damaged: it cannot be unpacked");
}

TEST(UnwritableOutput, ExitsWith74AndNamesFile) {
  for (const auto& command :
       std::vector<std::vector<std::string>>{{"generate", "--count", "3", "--out", "/no/such/folder/x"},
                                             {"generate", "--count", "3000", "--out", "/dev/full"},
                                             {"grammar", "--json", "/no/such/folder/x"},
                                             {"grammar", "--svg", "/no/such/folder/x"},
                                             {"ceiling", "--samples", "3", "--json", "/no/such/folder/x"}}) {
    const Outcome outcome = run(command + kSmall);
    EXPECT_TRUE(exits(outcome, 74, "/"));
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(GrammarPictures, DrawSmallGrammarsInFullAndLargeOnesAsAdjacency) {
  const TemporaryFolder folder;
  ASSERT_EQ(
      run(std::vector<std::string>{"grammar", "--svg", folder.file("a.svg"), "--dot", folder.file("a.dot")} + kSmall)
          .code,
      0);
  EXPECT_NE(whole_file(folder.file("a.svg")).find("<circle"), std::string::npos);
  EXPECT_EQ(whole_file(folder.file("a.dot")).find("digraph"), 0U);
  const Outcome big = run({"grammar", "--svg", "-"});
  EXPECT_EQ(big.out.find("<circle"), std::string::npos);
  EXPECT_NE(big.out.find("to state"), std::string::npos);
}

}  // namespace
}  // namespace sb::test
