// One step of one head with its state [K,V], in order and changed in place. Recurrences: kernels/step.h.
#pragma once
#include <cstdint>

namespace sb::cpu {

template <class T>
struct AttentionStep {
  int64_t K, V;
  T scale;
  const T *q, *k, *v, *g;  // g: null, one value, or one a key channel
  bool vector_decay;
  T *state, *out;
};
template <class T>
void attention_step(const AttentionStep<T>& p);

template <class T>
struct DeltaStep {
  int64_t factors, K, V;
  T scale;
  const T *q, *k, *v, *beta, *g;            // g: null or one value
  int64_t k_factor, v_factor, beta_factor;  // from factor to factor
  T *state, *out, *write;                   // write [V]: scratch
};
template <class T>
void delta_step(const DeltaStep<T>& p);

}  // namespace sb::cpu
