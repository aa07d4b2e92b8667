// Consequences of the device of runs for the process that starts them.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "config/config_file.h"

namespace sb {

// Default number of concurrent processes: one per core, or one if a run uses the GPU, since more would share it.
int usual_jobs(const std::vector<const ResolvedConfig*>& runs, int cores);

// One line if a run falls back to the CPU because the GPU cannot be used, although this build supports it (`built`).
// `missing` says why the GPU cannot be used. Empty if there is nothing to report.
std::string cpu_note(const std::vector<ResolvedConfig>& runs, bool built, const std::string& missing);

// Number of GPUs that a folder of device files (/dev) shows, without using CUDA.
int gpus_in(const std::string& devices);

// Whether "auto" resolved to the CPU although the machine has `gpus` GPUs: because local rank `local` has none of
// them, or because no GPU is visible (`visible`, as below).
bool lacks_gpu(const ResolvedConfig& run, int local, int gpus, const char* visible);

// The first `count` GPUs, by the names that a process uses for them. `visible`: value of CUDA_VISIBLE_DEVICES, read up
// to its first invalid name, as CUDA does, so there may be fewer. If it is not set (null), the names are 0, 1, …
// up to count - 1.
std::vector<std::string> visible_gpus(const char* visible, int count);

// The GPU that a rank should see (a value for CUDA_VISIBLE_DEVICES); `visible` as above. nullopt: no change, since only
// one GPU is visible (as with srun --gpus-per-task) or the local rank is not known. Empty: no GPU is left for this
// rank.
std::optional<std::string> gpu_of_rank(const char* visible, int local);

}  // namespace sb
