// One step of one head. The state [K,V] is contiguous and updated in place. kernels/step.h has the recurrences.
#pragma once
#include <cstdint>

namespace sb::cpu {

template <class T>
struct AttentionStep {
  int64_t K, V;
  T scale;
  const T *q, *k, *v, *g;  // g: null, one value, or one value per key channel (vector_decay)
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
  int64_t k_factor, v_factor, beta_factor;  // strides between factors
  T *state, *out, *write;                   // write [V]: scratch
};
template <class T>
void delta_step(const DeltaStep<T>& p);

}  // namespace sb::cpu
