// Labels of rows and columns. A key that differs between groups is shown in the label of the row (model, training,
// quirks) or of the column (grammar and task), unless row or column determine its value.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "report/rows.h"

namespace sb {

// Keys that always change together share a label.
struct LabelAxis {
  std::vector<std::string> keys, names;
  std::vector<std::map<std::string, std::string>> shown;  // by key: value to a text that no other value has
  // One word for a combination of values, e.g. "quick"; empty unless every combination has one.
  std::map<std::vector<std::string>, std::string> together;

  std::string name() const;  // "vocab/depth"
  std::vector<std::string> values(const Group& group) const;
  std::string text(const Group& group) const;                // "21/20"
  std::vector<std::string> lines(const Group& group) const;  // "vocab 21", "depth 20"
};

struct Labels {
  std::vector<LabelAxis> rows;                                // the first is the model
  std::vector<LabelAxis> columns;                             // the first is the task
  std::vector<std::string> varying;                           // every key that differs
  std::map<std::vector<std::string>, std::string> row_names;  // by row_values
  // Settings that all groups share and that differ from the default (the task's, as in the paper; for a switch, its
  // model's): quirks first, then switches, then the others in order of documentation. A switch that only some models
  // have counts if these share it.
  std::vector<std::pair<std::string, std::string>> common;  // key, value

  std::vector<std::string> row_values(const Group& group) const;     // identifies the row
  std::vector<std::string> column_values(const Group& group) const;  // identifies the column
  std::vector<std::string> column_lines(const Group& group) const;   // "task 1", "vocab 21"
  // "gated_delta_net · bf16": the model, and the fewest labels that tell its row from the other rows of this model.
  std::string row_name(const Group& group) const;
  std::string name(const Group& group) const;     // row_name and column in one line, for notes
  bool everywhere(const std::string& key) const;  // whether the key has the same value in all groups
};

Labels make_labels(const std::vector<Group>& groups, const SwitchDefaults& defaults = {});
// "Everywhere: lr 0.004, quirks delta_bf16, layers 2."; `first` precedes Labels::common. Omits settings of evaluations,
// and the end of a long list, which JSON has in full. Empty if there is nothing to list.
std::string everywhere_line(const Labels& labels, std::vector<std::string> first = {});

// Default settings of the task (JSON text), by its number or the name of its kind; those of task 1 if it is not known.
const ConfigMap& default_settings(const std::string& task_number);
std::string short_name(const std::string& key);  // "d_state"; "train.batch", since eval has a batch too
std::string shown_value(const std::string& value, int digits = 6);  // absent: "–"
std::vector<std::string> point_lines(const Point& point);           // "gap 20"

}  // namespace sb
