// Accuracy on valid during training, for the figures of docs/findings.md.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "findings/claims.h"
#include "findings/figures.h"

namespace sb {

using ValidCurve = std::vector<std::pair<int64_t, double>>;  // update, accuracy
using ValidCurves = std::map<std::string, ValidCurve>;       // by TableRun::folder; runs without evaluations are absent

// Reads the metrics of all runs, from folders and archives. Throws bad_input if metrics are damaged.
ValidCurves read_valid_curves(const Rows& rows);

// A task at one scale under one protocol: a line per model, the mean over grammars with its interval, of
// runs with the scale's `results` keys. Collapsed and diverged runs have lines of their own. n-gram and ceiling are
// references.
LinesFigure learning_curves(const Rows& rows, const Claims& claims, const ValidCurves& curves, const Scale& scale,
                            const std::string& protocol, int task);

}  // namespace sb
