#include "findings/model_figures.h"

namespace sb {

ModelFigure model_figure(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& protocol,
                         const std::string& model, int task) {
  Comparison c;
  c.a = {ArmModel{model, {}, {}}};
  c.task = task;
  if (task == 4) {
    c.statistic = Statistic::gap_accuracy;
    c.gaps = {20, 50, 100};
  }
  Figures figures = figures_of(rows, claims, scale, protocol, c);
  ModelFigure out;
  std::vector<double> values;
  for (const auto& [unit, value] : figures.effects) values.push_back(value);
  out.accuracy = estimate(values);
  out.values = std::move(figures.effects);
  out.ceilings = std::move(figures.a.ceilings);
  out.failed = std::move(figures.a.failed);
  if (!figures.a.params.empty()) out.params = figures.a.params.front();
  return out;
}

}  // namespace sb
