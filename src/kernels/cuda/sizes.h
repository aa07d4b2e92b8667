// Checks of sizes, and the layout of memory between kernels, on the host.
#pragma once
#include <cstddef>
#include <cstdint>

namespace sb::cuda {

constexpr bool within(int64_t x, int64_t most) {
  return x >= 1 && x <= most;
}
constexpr int ceil_div(int x, int y) {
  return (x + y - 1) / y;
}
// Bytes of a piece of a workspace
constexpr size_t rounded(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

// Takes pieces of a workspace one after the other; without memory it only counts bytes.
struct WorkspacePieces {
  char* memory;
  size_t used = 0;
  template <class P>
  void take(P*& piece, size_t bytes) {
    if (memory) piece = reinterpret_cast<P*>(memory + used);
    used += rounded(bytes);
  }
};

}  // namespace sb::cuda
