#include "train/results.h"

namespace sb {
namespace {

Json accuracies(const std::vector<Share>& shares) {
  Json out = Json::array();
  for (const Share& s : shares) out.push_back(s.total == 0 ? Json(nullptr) : Json(s.value()));
  return out;
}

Json bins(const std::vector<Share>& shares, double width) {
  Json out = Json::array();
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].total == 0) continue;
    out.push_back(
        {{"from", static_cast<double>(i) * width}, {"accuracy", shares[i].value()}, {"count", shares[i].total}});
  }
  return out;
}

}  // namespace

Json evaluation_json(const Evaluation& evaluation, Objective objective, bool breakdowns) {
  Json out = {{"accuracy", evaluation.elements.value()},
              {"loss", evaluation.loss},
              {"stderr", evaluation.stderr_},
              {"elements", evaluation.elements.total},
              {"frames", evaluation.frames}};
  if (objective == Objective::predict) out["kl"] = evaluation.kl;
  if (breakdowns) {
    out["by_position"] = accuracies(evaluation.by_position);
    out["by_gap_frame"] = bins(evaluation.by_gap_frame, 1);
    out["by_since_certain"] = bins(evaluation.by_since_certain, 1);
    out["by_entropy"] = bins(evaluation.by_entropy, kEntropyBin);
  }
  return out;
}

std::vector<std::string> quirk_names(const Quirks& quirks) {
  std::vector<std::string> out;
  if (quirks.test_in_train) out.emplace_back("test_in_train");
  if (quirks.delta_bf16) out.emplace_back("delta_bf16");
  if (quirks.dropout_stops) out.emplace_back("dropout_stops");
  if (quirks.padding_correct) out.emplace_back("padding_correct");
  if (quirks.sum_accumulated) out.emplace_back("sum_accumulated");
  if (quirks.first_lr_zero) out.emplace_back("first_lr_zero");
  if (quirks.double_residual) out.emplace_back("double_residual");
  if (quirks.select_on_test) out.emplace_back("select_on_test");
  return out;
}

}  // namespace sb
