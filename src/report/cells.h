// From the runs of a chosen candidate to its cells.
#pragma once
#include "report/labels.h"
#include "report/rows.h"

namespace sb {

void add_cells(Rows& rows, size_t group);
// What decides the grammar of a run among the averaged axes.
std::vector<std::string> grammar_of(const Rows& rows, size_t run);
// Means over the runs of each grammar; `values` are of `runs`, in their order.
std::map<std::vector<std::string>, double> means_by_grammar(const Rows& rows, const std::vector<size_t>& runs,
                                                            const std::vector<double>& values);
// Of what the cell measures.
std::map<std::vector<std::string>, double> means_by_grammar(const Rows& rows, const Cell& cell);
// "± 0.012", or "[0.951, 1.000]" if an end is cut at 0 or 1, or if the interval is around another value than the mean:
// grammars may have different numbers of runs. Empty without an interval.
std::string interval_text(const Cell& cell);
// Evaluations saved later may be there for some runs only.
void note_missing_points(Rows& rows, const Labels& labels);

}  // namespace sb
