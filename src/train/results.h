// Evaluations and results as JSON, in a stable order of keys.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "runs/config.h"
#include "train/evaluate.h"

namespace sb {

using Json = nlohmann::ordered_json;

// {"accuracy", "loss", "stderr", "elements", "frames"} (+ "kl" for the predict objective); with `breakdowns` also
// "by_position" (accuracies), "by_gap_frame", "by_since_certain", "by_entropy" (objects with bin, accuracy, count).
Json evaluation_json(const Evaluation& evaluation, Objective objective, bool breakdowns);
std::vector<std::string> quirk_names(const Quirks& quirks);  // those that are on

}  // namespace sb
