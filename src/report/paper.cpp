#include "report/paper.h"

#include <array>

namespace sb {
namespace {

struct Row {
  const char* model;
  std::array<PaperFigure, 3> task;
};

constexpr std::array<Row, 7> kPaper = {{
    {"delta_net", {{{.50, .01}, {.41, .01}, {.35, .001}}}},
    {"gla", {{{.75, .01}, {.68, .05}, {.50, .01}}}},
    {"mamba", {{{.89, .009}, {.71, .01}, {.63, .08}}}},
    {"mamba2", {{{.92, .007}, {.67, .01}, {.64, .01}}}},
    {"gated_delta_net", {{{.87, .01}, {.76, .01}, {.57, .008}}}},
    {"gated_delta_product", {{{.87, .008}, {.74, .02}, {.61, .01}}}},
    {"transformer", {{{.86, .005}, {.77, .01}, {.67, .07}}}},
}};

}  // namespace

PaperFigure paper_figure(const std::string& model, const std::string& task) {
  if (task != "1" && task != "2" && task != "3") return {};
  for (const auto& row : kPaper) {
    if (model == row.model) return row.task[static_cast<size_t>(task[0] - '1')];
  }
  return {};
}

int model_rank(const std::string& model) {
  for (size_t i = 0; i < kPaper.size(); ++i) {
    if (model == kPaper[i].model) return static_cast<int>(i);
  }
  return static_cast<int>(kPaper.size());
}

}  // namespace sb
