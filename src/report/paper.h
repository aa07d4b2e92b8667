// Figures that the paper reports for its largest models. They are shown next to runs with the paper's settings, never
// used in a computation.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "store/result.h"

namespace sb {

struct PaperFigure {
  double accuracy = 0;
  double spread = 0;
};

// The paper's figure, if the run has the paper's grammar, task, network and training: width and d_state of its table,
// one of its learning rates and warm-ups, and at least 1,000 test samples of the split it tests on. Seeds, precision,
// device, accumulation and quirks may differ; tables name them.
std::optional<PaperFigure> paper_figure(const Result& result);
// The paper's figure of the model on task 1, 2 or 3, independent of any run.
std::optional<PaperFigure> paper_table(const std::string& model, int task);
// Whether the paper's network of this model has the switch at this value (JSON text); nullopt if the paper does not
// have the model. `d_state` may be that of any of its sizes.
std::optional<bool> is_paper_switch(const std::string& model, const std::string& name, const std::string& value);
bool same_value(const std::string& a, const std::string& b);  // of switches and keys: "2" is "2.0"
std::vector<std::string> paper_models();                      // in the order of its tables
// Position of a model in tables: the paper's models in its order, then all others.
int model_rank(const std::string& model);
// Width of the paper's largest network of this model; 1024 for other models.
int paper_width(const std::string& model);

}  // namespace sb
