// `bench gpu --long`: how the speed of a training step depends on the length of its sequences.
#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "train/bench_gpu.h"

namespace sb::cli {

inline constexpr int kLongTokens = 32768;  // per step
inline constexpr int kLongTimes[] = {400, 1024, 4096, 16384, 32768};
inline constexpr int kComparedTime = 1024;

// A case for each of kLongTimes, with the batch whose number of tokens is closest to kLongTokens.
std::vector<GpuBenchCase> long_cases(const std::string& model, int width);

// Tokens per second relative to the same model and width at kComparedTime; nullopt if either was not measured.
std::optional<double> long_ratio(const GpuBench& bench, const GpuBenchRow& row);

// A measured step, for `bench gpu` with and without --long.
Json step_json(const GpuBenchRow& row);

std::string long_text(const GpuBench& bench);
Json long_json(const GpuBench& bench);

}  // namespace sb::cli
