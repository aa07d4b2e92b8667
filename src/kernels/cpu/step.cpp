#include "kernels/cpu/step.h"

#include <algorithm>
#include <cmath>

namespace sb::cpu {

template <class T>
void attention_step(const AttentionStep<T>& p) {
  const int64_t K = p.K, V = p.V;
  T *const S = p.state, *const o = p.out;
  std::fill_n(o, V, T(0));
  T a = p.g ? std::exp(*p.g) : T(1);
  for (int64_t i = 0; i < K; ++i) {
    if (p.g && p.vector_decay) a = std::exp(p.g[i]);
    const T ki = p.k[i], qi = p.scale * p.q[i];
    for (int64_t j = 0; j < V; ++j) {
      S[i * V + j] = a * S[i * V + j] + ki * p.v[j];
      o[j] += qi * S[i * V + j];
    }
  }
}

template <class T>
void delta_step(const DeltaStep<T>& p) {
  const int64_t K = p.K, V = p.V;
  T *const S = p.state, *const o = p.out, *const write = p.write;
  T a = p.g ? std::exp(*p.g) : T(1);
  for (int64_t f = 0; f < p.factors; ++f) {
    const T *kf = p.k + f * p.k_factor, *vf = p.v + f * p.v_factor;
    const T strength = p.beta[f * p.beta_factor];
    std::fill_n(write, V, T(0));
    for (int64_t i = 0; i < K; ++i) {
      for (int64_t j = 0; j < V; ++j) write[j] += kf[i] * (S[i * V + j] *= a);
    }
    for (int64_t j = 0; j < V; ++j) write[j] = strength * (vf[j] - write[j]);
    for (int64_t i = 0; i < K; ++i) {
      for (int64_t j = 0; j < V; ++j) S[i * V + j] += kf[i] * write[j];
    }
    a = 1;
  }
  std::fill_n(o, V, T(0));
  for (int64_t i = 0; i < K; ++i) {
    for (int64_t j = 0; j < V; ++j) o[j] += p.scale * p.q[i] * S[i * V + j];
  }
}

template void attention_step(const AttentionStep<float>&);
template void attention_step(const AttentionStep<double>&);
template void delta_step(const DeltaStep<float>&);
template void delta_step(const DeltaStep<double>&);

}  // namespace sb::cpu
