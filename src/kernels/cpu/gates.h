// Elementwise functions of one or two tensors. Results [rows, width] are contiguous, except RowTargets.
#pragma once
#include "kernels/cpu/rows.h"

namespace sb::cpu {

template <class T>
void gate_silu_forward(int64_t rows, int64_t width, const RowStarts<T>& y, const RowStarts<T>& z, T* out);
template <class T>
void gate_silu_backward(int64_t rows, int64_t width, const RowStarts<T>& gy, const RowStarts<T>& y,
                        const RowStarts<T>& z, T* dy, T* dz);
template <class T>
void gate_sigmoid_forward(int64_t rows, int64_t width, const RowStarts<T>& y, const RowStarts<T>& z, T scale, T* out);
template <class T>
void gate_sigmoid_backward(int64_t rows, int64_t width, const RowStarts<T>& gy, const RowStarts<T>& y,
                           const RowStarts<T>& z, T scale, const RowTargets<T>& dy, const RowTargets<T>& dz);
// A row of ab has 2 * width elements: a, then b.
template <class T>
void gate_swish_forward(int64_t rows, int64_t width, const RowStarts<T>& ab, T beta, T* out);
template <class T>
double gate_swish_backward(int64_t rows, int64_t width, const RowStarts<T>& gy, const RowStarts<T>& ab, T beta,
                           T* d_ab);  // returns d_beta
template <class T>
void softplus_bias_forward(int64_t rows, int64_t width, const RowStarts<T>& x, const T* bias, T* out);
template <class T>
void softplus_bias_backward(int64_t rows, int64_t width, const RowStarts<T>& gy, const RowStarts<T>& x, const T* bias,
                            T* dx, T* d_bias);
template <class T>
void log_sigmoid_forward(int64_t rows, int64_t width, const RowStarts<T>& x, T scale, T* out);
template <class T>
void log_sigmoid_backward(int64_t rows, int64_t width, const RowStarts<T>& gy, const RowStarts<T>& x, T scale, T* dx);

}  // namespace sb::cpu
