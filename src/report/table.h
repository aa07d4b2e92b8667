// Tables of rows: one cell a group and measurement, or one line a run, in every format.
#pragma once
#include <string>

#include "report/rows.h"

namespace sb {

enum class TableFormat { text, markdown, csv, json, latex };
const std::vector<std::string>& table_format_names();
TableFormat parse_table_format(const std::string& name);

// text, md, latex: a row a model and setting, a column a task. csv, json: a record a cell.
std::string cell_table(const Rows& rows, TableFormat format);
// One line or record a run; why it counts or not stands with it.
std::string run_table(const Rows& rows, TableFormat format);

}  // namespace sb
