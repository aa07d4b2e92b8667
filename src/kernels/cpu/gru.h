// GRU over a batch of sequences. Time is the first axis ([T,B,...]), so that a frame of the batch is one matrix.
#pragma once
#include <cstdint>

namespace sb::cpu {

struct GruSizes {
  int64_t batch, time, width;  // width d
};
// gi [T,B,3d]; weight [3d,d]; bias [3d]; hidden [T+1,B,d], with the initial state first; saved [T,B,4d] for backward.
template <class T>
void gru_forward(const GruSizes& s, const T* gi, const T* weight, const T* bias, double a_min, T* hidden, T* saved);
// d_out [T,B,d]; d_gi, d_gh [T,B,3d]; grad [B,d]: gradient of the initial state.
template <class T>
void gru_backward(const GruSizes& s, const T* d_out, const T* hidden, const T* saved, const T* weight, double a_min,
                  T* d_gi, T* d_gh, T* grad);

}  // namespace sb::cpu
