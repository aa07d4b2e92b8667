#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <thread>

#include "kernels/cpu/bind/tensors.h"
#include "kernels/cpu/block_pool.h"
#include "kernels/elementwise.h"
#include "kernels/poison.h"
#include "recurrence_run.h"

namespace sb::test {
namespace {

struct Layout {
  bool a_turned, b_turned;
};
constexpr Layout kLayouts[] = {{false, false}, {true, false}, {false, true}, {true, true}};

Tensor matrix(int64_t rows, int64_t columns, bool turned) {
  return turned ? at::randn({columns, rows}, at::kDouble).t() : at::randn({rows, columns}, at::kDouble);
}

double error(const Tensor& got, const Tensor& expected) {
  return ((got.to(at::kDouble) - expected).abs().max() / expected.abs().max().clamp_min(1e-30)).item<double>();
}

// Sizes around the tiles, the strips of a task and the slices of the depth.
const std::vector<std::array<int64_t, 3>> kSizes = {{1, 1, 1},      {1, 40, 7},    {7, 1, 33},     {8, 16, 8},
                                                    {9, 17, 385},   {96, 24, 384}, {97, 25, 383},  {100, 50, 0},
                                                    {130, 70, 769}, {3, 300, 200}, {3201, 33, 12}, {400, 9, 1000}};

TEST(Matmul, EqualsTheProductInDoubleForEverySizeAndLayout) {
  at::manual_seed(1);
  kernels::poison_buffers(true);
  for (const auto& [M, N, K] : kSizes) {
    for (const auto& [a_turned, b_turned] : kLayouts) {
      SCOPED_TRACE(c10::str(M, " x ", N, " x ", K, a_turned, b_turned));
      const Tensor a = matrix(M, K, a_turned), b = matrix(K, N, b_turned), bias = at::randn({N}, at::kDouble);
      const Tensor truth = at::mm(a, b);
      EXPECT_LT(error(cpu::multiplied(a, b), truth), 1e-14);
      EXPECT_LT(error(cpu::multiplied(a, b, bias), truth + bias), 1e-14);
      EXPECT_LT(error(cpu::multiplied(a.to(at::kFloat), b.to(at::kFloat)), truth), 2e-6);
      Tensor sum = at::randn({M, N}, at::kDouble);
      const Tensor expected = sum + truth;
      cpu::multiply(sum, a, b, {}, true);
      EXPECT_LT(error(sum, expected), 1e-14);
    }
  }
  kernels::poison_buffers(false);
}

TEST(Matmul, ReadsAndWritesPartsOfWiderMatrices) {
  at::manual_seed(2);
  const Tensor wide = at::randn({50, 90}), b = at::randn({30, 41}), out = at::full({50, 60}, 7.0F);
  cpu::multiply(out.narrow(1, 10, 41), wide.narrow(1, 20, 30), b);
  EXPECT_LT(error(out.narrow(1, 10, 41), at::mm(wide.narrow(1, 20, 30).to(at::kDouble), b.to(at::kDouble))), 2e-6);
  EXPECT_TRUE(out.narrow(1, 0, 10).eq(7).all().item<bool>());
  EXPECT_TRUE(out.narrow(1, 51, 9).eq(7).all().item<bool>());
}

TEST(Matmul, BytesDoNotDependOnThreads) {
  at::manual_seed(3);
  const int before = at::get_num_threads();
  for (const auto& [M, N, K] : std::vector<std::array<int64_t, 3>>{
           {3200, 96, 64}, {64, 48, 3200}, {200, 1601, 64}, {1600, 70, 600}, {150, 170, 2100}}) {
    for (const auto& [a_turned, b_turned] : kLayouts) {
      const Tensor a = matrix(M, K, a_turned).to(at::kFloat), b = matrix(K, N, b_turned).to(at::kFloat);
      at::set_num_threads(1);
      const Tensor one = cpu::multiplied(a, b);
      for (const int threads : {2, 3, 4, 9}) {
        at::set_num_threads(threads);
        EXPECT_TRUE(cpu::multiplied(a, b).equal(one)) << M << " x " << N << " x " << K << ", threads " << threads;
      }
    }
  }
  // Products too small for a float are zeros of their own sign.
  const Tensor tiny = at::full({96, 2048}, 1e-30F), against = at::full({2048, 96}, -1e-30F);
  for (const int threads : {1, 4, 16}) {
    at::set_num_threads(threads);
    EXPECT_TRUE(at::signbit(cpu::multiplied(tiny, against)).all().item<bool>()) << threads << " threads";
  }
  at::set_num_threads(before);
}

TEST(Elementwise, BytesDoNotDependOnThreads) {
  const int before = at::get_num_threads();
  for (const auto& f : {sb::sigmoid, sb::softplus, sb::silu, sb::elu}) {
    std::vector<Tensor> one;
    for (const int threads : {1, 2, 3, 4}) {
      at::set_num_threads(threads);
      at::manual_seed(4);
      const Tensor x = at::randn({7, 13003}).requires_grad_(), y = f(x);
      y.backward(at::randn({7, 13003}));
      if (threads == 1) one = {y.detach(), x.grad()};
      EXPECT_TRUE(y.equal(one[0]) && x.grad().equal(one[1])) << threads << " threads";
      EXPECT_TRUE(at::allclose(y, f(x.to(at::kDouble)).to(at::kFloat), 1e-6, 1e-6));
    }
  }
  at::set_num_threads(before);
}

TEST(BlockPool, ReusesReturnedBlocks) {
  constexpr size_t bytes = 5'000'000;
  cpu::release_free_blocks();
  void* const first = cpu::take_block(bytes);
  std::memset(first, 1, bytes);
  cpu::give_block(first, bytes);
  EXPECT_GE(cpu::free_block_bytes(), bytes);
  EXPECT_EQ(cpu::take_block(bytes), first);
  EXPECT_EQ(cpu::free_block_bytes(), 0U);
  cpu::give_block(first, bytes);
  cpu::release_free_blocks();
  EXPECT_EQ(cpu::free_block_bytes(), 0U);
}

TEST(BlockPool, ReusesLastReturnedBlockFirst) {
  constexpr size_t bytes = 5'000'000;
  cpu::release_free_blocks();
  void* const blocks[] = {cpu::take_block(bytes), cpu::take_block(bytes), cpu::take_block(bytes)};
  for (const int i : {1, 2, 0}) cpu::give_block(blocks[i], bytes);
  for (const int i : {0, 2, 1}) EXPECT_EQ(cpu::take_block(bytes), blocks[i]);
  for (void* block : blocks) cpu::give_block(block, bytes);
  cpu::release_free_blocks();
}

TEST(BlockPool, BoundsFreeMemory) {
  cpu::release_free_blocks();
  constexpr size_t largest = size_t{1} << 26;
  for (size_t bytes = cpu::kPooledBytes; bytes < largest; bytes += bytes / 8) {
    void* const block = cpu::take_block(bytes);
    cpu::give_block(block, bytes);
  }
  EXPECT_LE(cpu::free_block_bytes(), (size_t{1} << 28) + 2 * largest);
  cpu::release_free_blocks();
}

TEST(BlockPool, ServesTensorsOfSeveralThreads) {
  cpu::pool_tensor_memory();
  std::vector<std::thread> threads;
  std::array<bool, 4> right{};
  for (size_t t = 0; t < right.size(); ++t) {
    threads.emplace_back([&right, t] {
      bool all = true;
      for (int i = 0; i < 50; ++i) {
        const Tensor x = at::full({70'000 + 1000 * i}, static_cast<double>(t)), y = x.clone();
        all = all && y.eq(static_cast<double>(t)).all().item<bool>();
      }
      right[t] = all;
    });
  }
  for (auto& thread : threads) thread.join();
  for (const bool r : right) EXPECT_TRUE(r);
}

}  // namespace
}  // namespace sb::test
