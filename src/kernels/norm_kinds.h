// Which norm over the last axis, and where a SiLU gate stands.
#pragma once

namespace sb {

// u / sqrt(mean(u^2) + eps); u / (sqrt(mean(u^2)) + eps); u / sqrt(sum(u^2) + eps)
enum class Norm { rms, outer_eps, l2 };
enum class NormGate { none, after, before };

}  // namespace sb
