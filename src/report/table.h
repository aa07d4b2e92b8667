// Tables of rows: one cell per group and measurement, or one line per run, in every format.
#pragma once
#include <string>

#include "report/rows.h"

namespace sb {

enum class TableFormat { text, markdown, csv, json, latex };
const std::vector<std::string>& table_format_names();
TableFormat parse_table_format(const std::string& name);

// text, md, latex: one row per model and setting, one column per task. csv, json: one record per cell.
std::string cell_table(const Rows& rows, TableFormat format);
// One line or record per run, with the reason why it counts or not.
std::string run_table(const Rows& rows, TableFormat format);

}  // namespace sb
