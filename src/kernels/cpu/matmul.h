// Multithreaded C = A B (+ C, + bias) for matrices of any size and stride. The result does not depend on the number of
// threads, unlike in a BLAS: the sizes alone determine the tiles of C, and one thread sums each tile from front to
// back. Operands are copied once into panels that the inner loop reads sequentially.
#pragma once
#include <cstdint>

namespace sb::cpu {

// Element (i, j) is data[i * row + j * column]; one of the two strides is 1.
template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;
};

enum class Start { zero, add };  // zero: overwrite C; add: add to C

// a [M,K] b [K,N] -> c [M,N] with row stride `ldc`. `bias`: N values added to every row, or null.
template <class T>
void matmul(int64_t M, int64_t N, int64_t K, const Matrix<T>& a, const Matrix<T>& b, T* c, int64_t ldc,
            Start start = Start::zero, const T* bias = nullptr);

}  // namespace sb::cpu
