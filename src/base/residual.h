// How the output f(h) of a layer is combined with its input h.
#pragma once

namespace sb {

enum class Residual {
  post,     // h <- LN(h + f(h))
  doubled,  // h <- LN(h + (h + f(h))): the published Transformer, whose layer already adds its input
  pre,      // h <- h + f(LN(h)), then the same with the MLP as f; a final LN precedes the decoder
};
constexpr int kResidualKinds = 3;

constexpr const char* to_string(Residual kind) {
  return kind == Residual::post ? "post" : kind == Residual::doubled ? "double" : "pre";
}

}  // namespace sb
