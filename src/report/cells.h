// Inside of rows: from the runs of a chosen candidate to its cells.
#pragma once
#include "report/labels.h"
#include "report/rows.h"

namespace sb {

void add_cells(Rows& rows, size_t group);
// Evaluations saved later may be there for some runs only.
void note_missing_points(Rows& rows, const Labels& labels);

}  // namespace sb
