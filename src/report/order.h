// The order of rows, columns and runs in every table.
#pragma once
#include <algorithm>
#include <tuple>
#include <vector>

#include "report/labels.h"
#include "report/select.h"

namespace sb {

inline bool less_all(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), less_value);
}

// Order of row values (the model first): the paper's models in its order, then the others.
struct RowOrder {
  bool operator()(const std::vector<std::string>& a, const std::vector<std::string>& b) const {
    const int x = model_rank(plain_value(a[0])), y = model_rank(plain_value(b[0]));
    return x != y ? x < y : less_all(a, b);
  }
};

struct ColumnKey {
  std::vector<std::string> values;
  Point point;
};
struct ColumnOrder {
  bool operator()(const ColumnKey& a, const ColumnKey& b) const {
    if (a.values != b.values) return less_all(a.values, b.values);
    return a.point < b.point;
  }
};

// Indices of the cells, or of the runs, row by row.
std::vector<size_t> ordered_cells(const Rows& rows, const Labels& labels);
std::vector<size_t> ordered_runs(const Rows& rows, const Labels& labels);

}  // namespace sb
