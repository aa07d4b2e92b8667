// Samples as a model meets them: dense frames with their noise, targets, and where elements begin.
#pragma once
#include "base/npz.h"
#include "tasks/gap_task.h"

namespace sb::cli {

// Bytes a sample of the split adds to the archive.
uint64_t dense_sample_bytes(const GapTask& task, Split split);

// Arrays, T = the most frames a sample of the split can have:
//   frames  float32 [samples, T, vocab]   one-hot plus noise, zero on padding
//   targets int32   [samples, T]          state id (objective predict: class of the next element), -1 where none
//   starts  int32   [samples, length + 1] element e owns frames starts[e] .. starts[e+1] - 1
void write_dense(NpzWriter& npz, const GapTask& task, Split split, const SampleBlock& block);

}  // namespace sb::cli
