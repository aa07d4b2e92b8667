#include "models/registry.h"

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"

namespace sb {

#define SB_MODEL(name, ...) ModelRow name##_row();
#include "base/models.def"
#undef SB_MODEL

namespace {

std::vector<ModelRow>& rows() {
  static std::vector<ModelRow> all = {
#define SB_MODEL(name, ...) name##_row(),
#include "base/models.def"
#undef SB_MODEL
  };
  return all;
}

}  // namespace

const Switch* ModelRow::find(std::string_view switch_name) const {
  for (const auto& each : switches)
    if (each.name() == switch_name) return &each;
  return nullptr;
}

const std::vector<ModelRow>& registry() {
  return rows();
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& row : rows()) names.push_back(row.name);
  return names;
}

const ModelRow& find_model(const std::string& name) {
  for (const auto& row : rows())
    if (row.name == name) return row;
  const auto hint = did_you_mean(name, model_names());
  throw bad_input("model.name", "unknown model '" + printable(name) + "'" +
                                    (hint.empty() ? ", expected one of " + join_or(model_names()) : hint));
}

void register_model(ModelRow row) {
  for (const auto& known : rows())
    if (known.name == row.name) throw bad_input("model.name", "the name '" + row.name + "' is taken");
  rows().push_back(std::move(row));
}

}  // namespace sb
