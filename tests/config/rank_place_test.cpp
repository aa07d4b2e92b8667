#include "config/rank_place.h"

#include <gtest/gtest.h>

#include <map>

#include "../base/expect.h"
#include "base/error.h"

namespace sb {
namespace {

using Values = std::map<std::string, std::string>;

RankPlace place(const Values& values) {
  return rank_place([&](const char* name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const Values& values) {
  return error_line([&] { place(values); });
}

const Values kTorchrun = {{"WORLD_SIZE", "4"}, {"RANK", "3"}, {"MASTER_ADDR", "node-1"}, {"MASTER_PORT", "29500"}};
const Values kSrun = {{"SLURM_STEP_NUM_TASKS", "8"},
                      {"SLURM_PROCID", "5"},
                      {"SLURM_STEP_NODELIST", "gpu[07-09,12]"},
                      {"SLURM_JOB_ID", "1234"},
                      {"SLURM_STEP_ID", "0"}};

Values with(Values values, const std::string& name, const std::string& value) {
  values[name] = value;
  return values;
}

Values without(Values values, const std::string& name) {
  values.erase(name);
  return values;
}

TEST(RankPlace, IsSingleProcessWithoutEnvironment) {
  const RankPlace alone = place({});
  EXPECT_FALSE(alone.grouped);
  EXPECT_EQ(alone.size, 1);
  EXPECT_FALSE(place({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}).grouped);  // a batch script
  EXPECT_FALSE(place({{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}).grouped);
}

TEST(RankPlace, ReadsTorchrun) {
  const RankPlace at = place(with(kTorchrun, "LOCAL_WORLD_SIZE", "2"));
  EXPECT_TRUE(at.grouped);
  EXPECT_EQ(at.rank, 3);
  EXPECT_EQ(at.size, 4);
  EXPECT_EQ(at.local_world_size, 2);
  EXPECT_EQ(at.local_rank, -1);
  EXPECT_EQ(place(with(kTorchrun, "LOCAL_RANK", "1")).local_rank, 1);
  EXPECT_EQ(at.address, "node-1");
  EXPECT_EQ(at.port, 29500);
  EXPECT_EQ(at.timeout_seconds, 300);
  EXPECT_EQ(at.origin, "WORLD_SIZE");
  EXPECT_EQ(place(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True")).port, 29501);
  EXPECT_EQ(place(with(kTorchrun, "SELECTIVBENCH_RANK_TIMEOUT", "20")).timeout_seconds, 20);
}

TEST(RankPlace, ReadsSrun) {
  const RankPlace at = place(kSrun);
  EXPECT_EQ(at.rank, 5);
  EXPECT_EQ(at.size, 8);
  EXPECT_EQ(at.address, "gpu07");
  EXPECT_EQ(place(with(kSrun, "SLURM_LOCALID", "3")).local_rank, 3);
  EXPECT_GE(at.port, 20000);
  EXPECT_LT(at.port, 30000);
  EXPECT_EQ(at.port, place(with(kSrun, "SLURM_PROCID", "0")).port);
  EXPECT_NE(at.port, place(with(kSrun, "SLURM_STEP_ID", "1")).port);
  EXPECT_EQ(place(with(with(kSrun, "MASTER_ADDR", "10.0.0.1"), "MASTER_PORT", "5000")).port, 5000);
  EXPECT_EQ(place(with(kSrun, "MASTER_ADDR", "10.0.0.1")).address, "10.0.0.1");
}

TEST(RankPlace, ErrorsNameVariable) {
  for (const char* name : {"RANK", "MASTER_ADDR", "MASTER_PORT"}) {
    EXPECT_EQ(refusal(without(kTorchrun, name)).find("[" + std::string(name) + "] expected"), 0U) << name;
  }
  EXPECT_EQ(refusal({{"RANK", "7"}}).find("[WORLD_SIZE] expected the number of ranks, since RANK is '7'"), 0U);
  EXPECT_EQ(refusal({{"RANK", ""}}).find("[WORLD_SIZE] expected"), 0U);
  EXPECT_EQ(refusal(with(kSrun, "RANK", "5")).find("[WORLD_SIZE] expected"), 0U) << "of whose world?";
  EXPECT_EQ(refusal({{"WORLD_SIZE", "1"}}).find("[RANK] expected"), 0U);
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"WORLD_SIZE", {"", "0", "-1", "1025", "4 ", "four", "99999999999999999999"}},
      {"RANK", {"", "-1", "4", "1.0"}},
      {"MASTER_ADDR", {"", "-h", "a b", "$(id)", "a\nb", "a;b", "a/b", std::string(254, 'a')}},
      {"MASTER_PORT", {"0", "65536", "http"}},
      {"LOCAL_WORLD_SIZE", {"0", "5"}},
      {"LOCAL_RANK", {"", "-1", "4"}},
      {"SELECTIVBENCH_RANK_TIMEOUT", {"1", "86401", "inf"}}};
  for (const auto& [name, values] : bad) {
    for (const auto& value : values) {
      const std::string line = refusal(with(kTorchrun, name, value));
      EXPECT_EQ(line.find("[" + name + "] expected"), 0U) << name << "=" << value << ": " << line;
      EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    }
  }
  EXPECT_NE(refusal(without(kSrun, "SLURM_STEP_NODELIST")), "");
  EXPECT_NE(refusal(with(kSrun, "SLURM_STEP_NODELIST", "n[1-3")), "");
}

TEST(RankPlace, FindsFirstHostOfNodeList) {
  EXPECT_EQ(first_host("n1"), "n1");
  EXPECT_EQ(first_host("n1,n2"), "n1");
  EXPECT_EQ(first_host("n[03-05,9],m1"), "n03");
  EXPECT_EQ(first_host("n[9,11]"), "n9");
  EXPECT_EQ(first_host("r[0-3]n[2-7]"), "r0n2");
  EXPECT_EQ(first_host("n[1-2]-ib,m"), "n1-ib");
  EXPECT_EQ(first_host("n[1"), "");
  EXPECT_EQ(first_host(""), "");
}

TEST(RowsOfRank, CoverTheBatchOnceInOrder) {
  for (int batch = 1; batch <= 70; ++batch) {
    for (int size = 1; size <= batch; ++size) {
      int next = 0;
      for (int rank = 0; rank < size; ++rank) {
        const auto [first, last] = rows_of_rank(batch, rank, size);
        EXPECT_EQ(first, next);
        EXPECT_GE(last - first, batch / size);
        EXPECT_LE(last - first, (batch + size - 1) / size);
        next = last;
      }
      EXPECT_EQ(next, batch);
    }
  }
}

}  // namespace
}  // namespace sb
