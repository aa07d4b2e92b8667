#include "findings/gate_parameters.h"

#include "base/number.h"
#include "report/rows.h"

namespace sb {
namespace {

// The value of a switch of the run, or `initial` if the config does not have it.
double value_of(const Result& r, const std::string& key, double initial) {
  const auto it = r.config.find("model.switch " + key);
  if (it == r.config.end()) return initial;
  const std::string text = plain_value(it->second);
  if (text == "on" || text == "true") return 1;
  if (text == "off" || text == "false") return 0;
  return parse_finite(text).value_or(initial);
}

int64_t heads_of(const Result& r) {
  int64_t heads = 4;  // d <= 512; else the smallest power of two that divides d into heads of at most 128
  while (r.width > 512 && (r.width % heads != 0 || r.width / heads > 128) && heads < r.width) heads *= 2;
  return static_cast<int64_t>(value_of(r, "heads", static_cast<double>(heads)));
}

}  // namespace

std::optional<int64_t> gate_parameters(const Result& r, bool with_keys) {
  const int64_t d = r.width, h = heads_of(r);
  const bool conv = value_of(r, "short_conv", 1) != 0;
  const auto keys = static_cast<int64_t>(value_of(r, "expand_k", 1) * static_cast<double>(d));
  if (r.model == "gla") {
    constexpr int64_t rank = 16;
    return rank * d + rank * keys + keys;
  }
  if (r.model == "mamba") {
    const int64_t channels = 2 * d, rank = (d + 15) / 16, states = static_cast<int64_t>(value_of(r, "d_state", 64));
    return channels * rank + channels * rank + channels + channels * states;  // x_proj's rows of dt, dt_proj, A_log
  }
  if (r.model == "mamba2") return 2 * h * d + 2 * h + 2 * h;  // in_proj's rows of dt, dt_bias, A_log
  const bool product = r.model == "gated_delta_product";
  if (r.model == "delta_net" || r.model == "gated_delta_net" || product) {
    const auto factors = product ? static_cast<int64_t>(value_of(r, "householder_factors", 4)) : 1;
    const int64_t decay = r.model == "delta_net" ? 0 : h * d + h + h;  // a_proj, A_log, dt_bias
    const int64_t of_keys = with_keys ? keys * d + (conv ? 4 * keys : 0) : 0;
    return factors * (of_keys + h * d) + decay;
  }
  return std::nullopt;
}

}  // namespace sb
