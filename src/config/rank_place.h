// Training of one run by several processes ("ranks"): the rank of this process, from the environment of torchrun or
// srun.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace sb {

constexpr int kMaxRanks = 1024;

struct RankPlace {
  int rank = 0, size = 1;
  int local_rank = -1;           // rank on this machine, which selects its GPU; -1: not known
  int local_world_size = 1;      // ranks on this machine that share its cores, if the environment says so
  bool grouped = false;          // the environment defines a group, even of one rank
  std::string address;           // host of rank 0
  int port = 0;                  // 1–65535
  double timeout_seconds = 300;  // seconds without a sign of life after which a rank counts as lost
  std::string origin;            // the variable that `size` comes from; empty: none
};

// Value of an environment variable; nullopt if it is not set.
using Variables = std::function<std::optional<std::string>(const char* name)>;
Variables process_environment();

// Reads WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT. Otherwise, within a step of srun, reads SLURM_STEP_NUM_TASKS and
// SLURM_PROCID; address and port then come from the job unless MASTER_ADDR and MASTER_PORT are set. Throws bad_input
// "[VARIABLE] …", also if only one of RANK and WORLD_SIZE is set.
RankPlace rank_place(const Variables& variables);

// The first host of a Slurm node list: "n[03-05,9],m1" gives "n03". Empty if the list is invalid.
std::string first_host(const std::string& list);

// Rows [first, last) of a batch for a rank: in rank order, with sizes that differ by at most one.
std::pair<int, int> rows_of_rank(int batch, int rank, int size);

}  // namespace sb
