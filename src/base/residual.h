// How a layer's output f(h) joins its input h.
#pragma once

namespace sb {

enum class Residual {
  post,     // h <- LN(h + f(h))
  doubled,  // h <- LN(h + (h + f(h))): the published Transformer, whose layer already holds its input
  pre,      // h <- h + f(LN(h)), the MLP as a second such step, and a last LN before the decoder
};
constexpr int kResidualKinds = 3;

constexpr const char* to_string(Residual kind) {
  return kind == Residual::post ? "post" : kind == Residual::doubled ? "double" : "pre";
}

}  // namespace sb
