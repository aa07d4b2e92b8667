// The figures of docs/findings.md, from rows and verdicts.
#pragma once
#include <string>
#include <vector>

#include "findings/learning_curves.h"
#include "findings/verdict.h"

namespace sb {

struct FindingsFigure {
  std::string name;  // of the file, without ".svg"
  std::string title;
  std::string svg;
};
// At every scale except quick: differences with their intervals and accuracy over gap length, under the corrected
// protocol, and learning curves of both protocols. Empty figures are omitted.
std::vector<FindingsFigure> findings_figures(const Rows& rows, const Claims& claims, const ValidCurves& curves = {});
// Markdown section that shows the figures; `folder` is the path before the names of the files, with its slash.
std::string figures_section(const std::vector<FindingsFigure>& figures, const std::string& folder);

}  // namespace sb
