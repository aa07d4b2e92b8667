// Large blocks of memory, kept when they are given back: a train step asks for the same sizes every time, and fresh
// pages cost the kernel several percent of it. Blocks are whole huge pages where the system has them.
#pragma once
#include <cstddef>

namespace sb::cpu {

inline constexpr size_t kPooledBytes = size_t{1} << 18;  // smaller requests are malloc's business

void* take_block(size_t bytes);              // bytes >= kPooledBytes; aligned to a line of cache
void give_block(void* block, size_t bytes);  // the same `bytes` as taken
void release_free_blocks();                  // back to the system
size_t free_block_bytes();

// Tensors of the CPU take their large blocks here, except where ATen operations stand in for our kernels. For a
// process, once.
void pool_tensor_memory();

}  // namespace sb::cpu
