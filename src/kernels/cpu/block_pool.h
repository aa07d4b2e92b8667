// Pool of large memory blocks, which keeps released blocks for reuse. Every training step allocates the same sizes, and
// getting new pages from the operating system would take several percent of its time. Blocks use huge pages if
// available.
#pragma once
#include <cstddef>

namespace sb::cpu {

inline constexpr size_t kPooledBytes = size_t{1} << 18;  // smaller blocks are not pooled

void* take_block(size_t bytes);              // bytes >= kPooledBytes; aligned to a cache line
void give_block(void* block, size_t bytes);  // `bytes` as passed to take_block()
void release_free_blocks();                  // returns all unused blocks to the system
size_t free_block_bytes();

// Makes all CPU tensors use this pool for large blocks, except while Backend::aten is forced. Call once per process.
void pool_tensor_memory();

}  // namespace sb::cpu
