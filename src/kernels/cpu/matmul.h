// C = A B (+ C, or + a row of biases) for matrices of any size and stride, on all threads. A BLAS splits its sums by
// thread count; here the result is cut into tiles by sizes alone and each tile is summed by one thread, front to back.
// Operands are copied once into panels that the inner loop reads in order.
#pragma once
#include <cstdint>

namespace sb::cpu {

// Element (i, j) is data[i * row + j * column]; one of the two strides is 1.
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;
};

enum class Start { zero, add };  // what C holds before the sum

// a [M,K] b [K,N] -> c [M,N] with `ldc` elements from row to row. `bias` (or null): N values added to every row.
template <class T>
void matmul(int64_t M, int64_t N, int64_t K, const Matrix<T>& a, const Matrix<T>& b, T* c, int64_t ldc,
            Start start = Start::zero, const T* bias = nullptr);

}  // namespace sb::cpu
