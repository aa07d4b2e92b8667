// Figures the paper reports for its largest models; shown beside ours, never used in a computation.
#pragma once
#include <string>

namespace sb {

struct PaperFigure {
  double accuracy = 0;  // 0: none
  double spread = 0;
};

PaperFigure paper_figure(const std::string& model, const std::string& task);
// Place of a model in tables: the paper's order, then everything else.
int model_rank(const std::string& model);

}  // namespace sb
