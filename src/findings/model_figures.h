// The accuracy of one model on one task at one scale under one protocol.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "findings/population.h"

namespace sb {

struct ModelFigure {
  Estimate accuracy;              // over grammars
  std::map<Unit, double> values;  // by grammar
  std::map<Unit, double> ceilings;
  std::vector<std::string> failed;  // runs to repeat
  int64_t params = 0;
};

// Task 4: the mean over gaps of 20, 50 and 100 frames.
ModelFigure model_figure(const Rows& rows, const Claims& claims, const Scale& scale, const std::string& protocol,
                         const std::string& model, int task);

}  // namespace sb
