// One run by several processes ("ranks"): which of them this one is, by the environment that torchrun or srun sets.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace sb {

constexpr int kMostRanks = 1024;

struct RankPlace {
  int rank = 0, size = 1;
  int local = -1;         // number among the ranks of this machine: that of its card; -1: nobody told
  int beside = 1;         // ranks on this machine that share its cores, as far as the environment tells
  bool grouped = false;   // the environment names a group, be it of one
  std::string address;    // where rank 0 is found
  int port = 0;           // 1–65535
  double patience = 300;  // seconds without a sign of life after which a rank counts as lost
  std::string origin;     // the variable that gave `size`; empty: none did
};

// Value of a variable, nothing where it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Variables process_environment();

// WORLD_SIZE, RANK, MASTER_ADDR, MASTER_PORT; else, within a step of srun, SLURM_STEP_NUM_TASKS and SLURM_PROCID, with
// the address and port taken from the job where MASTER_ADDR and MASTER_PORT do not say. Throws bad_input "[VARIABLE]
// …", also where only one of RANK and WORLD_SIZE is set.
RankPlace rank_place(const Variables& variables);

// The first host of a Slurm node list: "n[03-05,9],m1" gives "n03". Empty: it is none.
std::string first_host(const std::string& list);

// Rows [first, last) of a batch that a rank works on: in order of ranks, sizes that differ by one at most.
std::pair<int, int> rows_of_rank(int batch, int rank, int size);

}  // namespace sb
