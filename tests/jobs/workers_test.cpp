// Processes and the GPUs they are handed. This program is its own stand-in for a run: "stand-in FOLDER NAME" says
// which GPUs it sees, in FOLDER/NAME, and ends when FOLDER/NAME.go is there.
#include "jobs/workers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "../base/temporary_folder.h"
#include "jobs/devices.h"

namespace sb {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

std::string content(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

int stand_in(const std::string& file) {
  const char* gpus = std::getenv("CUDA_VISIBLE_DEVICES");
  std::ofstream(file + ".new") << (gpus == nullptr ? "unset" : gpus);
  fs::rename(file + ".new", file);
  for (int tries = 0; tries < 3000 && !fs::exists(file + ".go"); ++tries) ::usleep(10'000);
  return 0;
}

// Works 0, 1, … whose ends the test decides.
class Gpus : public ::testing::Test {
 protected:
  void add(size_t count) {
    for (size_t i = 0; i < count; ++i) works_.push_back({{"stand-in", file(i)}, "", "", "run " + std::to_string(i)});
  }
  std::string file(size_t work) const { return folder_.file("run-" + std::to_string(work)); }
  void end(size_t work) const { std::ofstream(file(work) + ".go"); }

  // `turn` is called once all that can run do, with their GPUs by work, and ends some of them.
  void run(int jobs, const std::vector<std::string>& gpus,
           const std::function<void(const std::map<size_t, std::string>& at_work)>& turn) {
    Workers workers;
    workers.jobs = jobs;
    workers.gpus = gpus;
    std::set<size_t> running, over;
    size_t begun = 0;
    workers.started = [&](size_t work) {
      running.insert(work);
      ++begun;
    };
    workers.finished = [&](size_t work, const WorkDone& done) {
      EXPECT_EQ(done.exit_code, 0) << done.errors;
      running.erase(work);
      over.insert(work);
      return false;
    };
    workers.tick = [&] {
      const size_t expected = std::min(static_cast<size_t>(jobs), works_.size() - over.size());
      if (running.size() != expected || expected == 0) return;
      std::map<size_t, std::string> at_work;
      for (const size_t work : running) {
        if (!fs::exists(file(work)) || fs::exists(file(work) + ".go")) return;  // not there yet, or on its way out
        at_work[work] = content(file(work));
      }
      turn(at_work);
    };
    work_through(works_, workers);
    EXPECT_EQ(over.size(), works_.size());
    EXPECT_EQ(begun, works_.size());
  }

  TemporaryFolder folder_;
  std::vector<Work> works_;
};

std::multiset<std::string> gpus_of(const std::map<size_t, std::string>& at_work) {
  std::multiset<std::string> out;
  for (const auto& [work, gpu] : at_work) out.insert(gpu);
  return out;
}

TEST_F(Gpus, ParallelRunsGetDifferentGpus) {
  add(3);
  run(3, {"0", "1", "2"}, [&](const auto& at_work) {
    EXPECT_EQ(gpus_of(at_work), (std::multiset<std::string>{"0", "1", "2"}));
    for (const auto& [work, gpu] : at_work) end(work);
  });
}

TEST_F(Gpus, AreReusedAfterTheirRun) {
  add(5);
  std::vector<std::string> left;  // by the runs that ended
  run(2, {"0", "1"}, [&](const std::map<size_t, std::string>& at_work) {
    const auto gpus = gpus_of(at_work);
    EXPECT_EQ(std::set<std::string>(gpus.begin(), gpus.end()).size(), at_work.size());
    const std::string newest = at_work.rbegin()->second;
    EXPECT_TRUE(left.empty() || newest == left.back()) << newest << " is not the GPU that was left";
    const auto ends = at_work.begin();  // the run that was begun first
    left.push_back(ends->second);
    end(ends->first);
    if (works_.size() - left.size() < 2)
      for (const auto& [work, gpu] : at_work) end(work);
  });
  EXPECT_GE(left.size(), 4U);
}

TEST_F(Gpus, AreSharedEvenlyByMoreRuns) {
  add(6);
  size_t turns = 0;
  run(5, {"7", "GPU-abc"}, [&](const std::map<size_t, std::string>& at_work) {
    const auto gpus = gpus_of(at_work);
    if (++turns == 1) {
      EXPECT_EQ(gpus.count("7"), 3U);
      EXPECT_EQ(gpus.count("GPU-abc"), 2U);
      return end(1);  // of the GPU with fewer
    }
    if (turns == 2) {
      EXPECT_EQ(at_work.at(5), "GPU-abc");
      EXPECT_EQ(gpus.count("7"), 3U);
    }
    for (const auto& [work, gpu] : at_work) end(work);
  });
  EXPECT_GE(turns, 2U);
}

TEST_F(Gpus, CanBeSharedByThreeRuns) {
  add(3);
  run(3, {"0"}, [&](const auto& at_work) {
    EXPECT_EQ(gpus_of(at_work), (std::multiset<std::string>{"0", "0", "0"}));
    for (const auto& [work, gpu] : at_work) end(work);
  });
}

TEST_F(Gpus, RespectCudaVisibleDevices) {
  ::setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
  add(2);
  run(2, visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"), 2), [&](const auto& at_work) {
    EXPECT_EQ(gpus_of(at_work), (std::multiset<std::string>{"2", "3"}));
    for (const auto& [work, gpu] : at_work) end(work);
  });
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST(GpuOfRank, IsVisibleDeviceOfRank) {
  EXPECT_EQ(gpu_of_rank(nullptr, 2), "2");
  EXPECT_EQ(gpu_of_rank("4,5,GPU-6", 2), "GPU-6");
  EXPECT_EQ(gpu_of_rank("4,5", 2), "") << "it has none";
  EXPECT_EQ(gpu_of_rank("4,5,-1,6", 3), "") << "CUDA stops reading there";
  EXPECT_EQ(gpu_of_rank("4", 2), std::nullopt) << "bound by who started it";
  EXPECT_EQ(gpu_of_rank("", 0), std::nullopt);
  EXPECT_EQ(gpu_of_rank("4,5", -1), std::nullopt);
}

TEST_F(Gpus, RunSeesAllVisibleOnesIfNoneAreAssigned) {
  for (const char* visible : {"2,3", ""}) {
    ::setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    works_.clear();
    add(1);
    fs::remove(file(0));
    fs::remove(file(0) + ".go");
    run(1, {}, [&](const auto& at_work) {
      EXPECT_EQ(at_work.at(0), visible);
      end(0);
    });
  }
  ::unsetenv("CUDA_VISIBLE_DEVICES");
}

}  // namespace
}  // namespace sb

int main(int count, char** arguments) {
  if (count == 3 && std::string(arguments[1]) == "stand-in") return sb::stand_in(arguments[2]);
  ::testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
