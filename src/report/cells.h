// Computes the cells of a group from the runs of its chosen candidate.
#pragma once
#include "report/labels.h"
#include "report/rows.h"

namespace sb {

void add_cells(Rows& rows, size_t group);
// The values of those averaged axes that determine the grammar of a run.
std::vector<std::string> grammar_of(const Rows& rows, size_t run);
// Means over the runs of each grammar; `values` belong to `runs`, in the same order.
std::map<std::vector<std::string>, double> means_by_grammar(const Rows& rows, const std::vector<size_t>& runs,
                                                            const std::vector<double>& values);
// Means of the accuracy that the cell measures.
std::map<std::vector<std::string>, double> means_by_grammar(const Rows& rows, const Cell& cell);
// "± 0.012", or "[0.951, 1.000]" if an end is cut at 0 or 1, or if the interval is around another value than the mean:
// grammars may have different numbers of runs. Empty without an interval.
std::string interval_text(const Cell& cell);
// Adds notes on points that only some runs of a cell have, since evaluations can be saved later.
void note_missing_points(Rows& rows, const Labels& labels);

}  // namespace sb
