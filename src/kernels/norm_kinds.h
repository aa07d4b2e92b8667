// Kinds of norm over the last axis, and the position of an optional SiLU gate relative to the norm.
#pragma once

namespace sb {

// rms: u / sqrt(mean(u^2) + eps); outer_eps: u / (sqrt(mean(u^2)) + eps); l2: u / sqrt(sum(u^2) + eps)
enum class Norm { rms, outer_eps, l2 };
enum class NormGate { none, after, before };

}  // namespace sb
