// Samples as a model sees them: dense frames with noise, targets, and the starts of elements.
#pragma once
#include "base/npz.h"
#include "tasks/gap_task.h"

namespace sb::cli {

// Bytes that one sample of the split adds to the archive.
uint64_t dense_sample_bytes(const GapTask& task, Split split);

// Arrays, with T the maximum frames of a sample of the split:
//   frames  float32 [samples, T, vocab]   one-hot plus noise, zero on padding
//   targets int32   [samples, T]          state id (objective predict: class of the next element); -1: none
//   starts  int32   [samples, length + 1] element e owns frames starts[e] .. starts[e+1] - 1
void write_dense(NpzWriter& npz, const GapTask& task, Split split, const SampleBlock& block);

}  // namespace sb::cli
