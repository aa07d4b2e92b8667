// Segments of the delta rules (segments.cuh). A segment maps its initial state S to A S + B, where A [K,K] is the
// product of its steps' transitions. The first pass of forward starts from (0, I) with values (v, 0), and so ends with
// (B, A). That of backward finds D in dS <- A^T dS + D.
#pragma once
#include "kernels/cuda/segments.cuh"

namespace sb::cuda {

struct DeltaJoin {
  int pairs, K, V;
  int count;           // of segments
  int transition;      // column of A in `added`
  int added_columns;   // of `added`
  const float* added;  // [pairs][segments][K][added_columns], (B, A)
  const float* given;  // [pairs][K][V], initial states or gradients of final states; null: zeros
  float* states;       // [pairs][segments][K][V], out: initial states of segments, or gradients of their final
                       // states in place of D
};

// Carries states over the segments, or gradients backward from the last one.
cudaError_t launch_join(const DeltaJoin& p, bool backward, Target to);

}  // namespace sb::cuda
