#include "report/order.h"

namespace sb {

std::vector<size_t> ordered_cells(const Rows& rows, const Labels& labels) {
  std::vector<std::vector<std::string>> row;
  std::vector<ColumnKey> column;
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.cells.size(); ++i) {
    const Group& group = rows.groups[rows.cells[i].group];
    row.push_back(labels.row_values(group));
    column.push_back({labels.column_values(group), rows.cells[i].point});
    order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return row[a] != row[b] ? RowOrder{}(row[a], row[b]) : ColumnOrder{}(column[a], column[b]);
  });
  return order;
}

std::vector<size_t> ordered_runs(const Rows& rows, const Labels& labels) {
  std::vector<std::vector<std::string>> row, rest;
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.runs.size(); ++i) {
    const Group& group = rows.groups[rows.group_of[i]];
    row.push_back(labels.row_values(group));
    rest.push_back(labels.column_values(group));
    for (const auto* values : {&rows.settings[i], &rows.seeds[i]})
      rest.back().insert(rest.back().end(), values->begin(), values->end());
    order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (row[a] != row[b]) return RowOrder{}(row[a], row[b]);
    return rest[a] != rest[b] ? less_all(rest[a], rest[b]) : a < b;
  });
  return order;
}

}  // namespace sb
