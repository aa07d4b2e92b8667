// Rows of a tensor in device memory.
#pragma once
#include <cstdint>

namespace sb::cuda {

// [B,T,heads,width], strides in elements; the width has stride 1.
template <class Void>
struct RowsOf {
  Void* data;
  int64_t batch, time, head;
};
using Rows = RowsOf<void>;
using ConstRows = RowsOf<const void>;

}  // namespace sb::cuda
