// Figures the paper reports for its largest models; shown beside runs with the paper's settings, never used in a
// computation.
#pragma once
#include <optional>
#include <string>

#include "runs/result.h"

namespace sb {

struct PaperFigure {
  double accuracy = 0;
  double spread = 0;
};

// The paper's figure where the run has its grammar, task, network and training: widths and d_state of its table, one of
// its learning rates and warm-ups. Seeds, precision, device, evaluation, accumulation and quirks may differ.
std::optional<PaperFigure> paper_figure(const Result& result);
// Place of a model in tables: the paper's order, then everything else.
int model_rank(const std::string& model);

}  // namespace sb
