// Whether other settings of a model, such as another learning rate, might change a verdict.
#pragma once
#include <string>
#include <vector>

#include "findings/verdict.h"

namespace sb {

// Titles of the arms that might gain enough from other settings to change the verdict.
std::vector<std::string> open_models(const Rows& rows, const Claims& claims, const Comparison& c,
                                     const Figures& figures, const Estimate& effect, Verdict verdict);

// Whether learning rates of a model were not chosen by accuracy on valid, on this kind of task. Those chosen at the
// scale of the choices count at other scales.
bool is_untuned(const Rows& rows, const Claims& claims, const Scale& scale, const Comparison& c, const Figures& f);

// Whether the statistic is an accuracy, or a loss of it, which other learning rates change.
bool depends_on_rates(const Comparison& c);
// Whether other learning rates might change a verdict about accuracies. That of a single model can only become larger,
// and a claim with at_most says that it cannot.
bool rates_matter(const Comparison& c, const Estimate& effect, Verdict verdict);

}  // namespace sb
