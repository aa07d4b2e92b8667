// Figures the paper reports for its largest models; shown beside runs with the paper's settings, never used in a
// computation.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runs/result.h"

namespace sb {

struct PaperFigure {
  double accuracy = 0;
  double spread = 0;
};

// The paper's figure where the run has its grammar, task, network and training: widths and d_state of its table, one of
// its learning rates and warm-ups, and a test of at least its 1,000 samples on the split it tests on. Seeds, precision,
// device, accumulation and quirks may differ; tables name them.
std::optional<PaperFigure> paper_figure(const Result& result);
// What its table says of the model on task 1, 2 or 3, whatever was run here.
std::optional<PaperFigure> paper_table(const std::string& model, int task);
// Whether the paper's network of this model has the switch at this value (JSON text); nothing where the model is not
// the paper's. `d_state` is as in any of its sizes.
std::optional<bool> is_paper_switch(const std::string& model, const std::string& name, const std::string& value);
std::vector<std::string> paper_models();  // in the order of its tables
// Place of a model in tables: the paper's order, then everything else.
int model_rank(const std::string& model);

}  // namespace sb
