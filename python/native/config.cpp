#include "native/config.h"

#include <algorithm>
#include <filesystem>

#include "base/sha256.h"
#include "base/suggest.h"
#include "base/text.h"
#include "grammar/automaton_json.h"
#include "store/open_run.h"
#include "suites/suite.h"

namespace sb::python {
namespace {

TomlValue to_toml(const py::handle& value, const Place& place) {
  TomlValue out;
  out.place = place;
  if (py::isinstance<py::bool_>(value)) {
    out.content = value.cast<bool>();
  } else if (py::isinstance<py::int_>(value)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow != 0) throw bad_input("config", "a number beyond 64 bits, " + place.text());
    out.content = static_cast<int64_t>(number);
  } else if (py::isinstance<py::float_>(value)) {
    out.content = value.cast<double>();
  } else if (py::isinstance<py::str>(value)) {
    out.content = value.cast<std::string>();
  } else if (py::isinstance<py::list>(value)) {
    TomlValue::List list;
    for (const py::handle item : value) list.push_back(to_toml(item, place));
    out.content = std::move(list);
  } else {
    throw bad_input("config", "wrong kind of value, expected a number, a boolean, text or a list, got " +
                                  printable(py::str(py::type::handle_of(value).attr("__name__")).cast<std::string>()) +
                                  ", " + place.text());
  }
  return out;
}

py::object to_python(const TomlValue& value) {
  if (const auto* list = value.list()) {
    py::list out;
    for (const auto& item : *list) out.append(to_python(item));
    return out;
  }
  if (const auto* text = value.text()) return py::str(*text);
  if (const auto* truth = std::get_if<bool>(&value.content)) return py::bool_(*truth);
  if (const auto* whole = std::get_if<int64_t>(&value.content)) return py::int_(*whole);
  if (const auto* real = std::get_if<double>(&value.content)) return py::float_(*real);
  return py::none();
}

// As one file would hold them: each key on a section's line of its own.
void add_item(Settings& settings, const Item& item) {
  const auto& [name, value, from] = item;
  const Place place{from, 0, 0};
  const size_t dot = name.find('.');
  if (dot == std::string::npos)
    throw bad_input("config", "expected section.key, got '" + printable(name) + "', " + place.text());
  TomlValue section;
  section.place = place;
  section.content = TomlValue::Table{{name.substr(dot + 1), place, to_toml(value, place)}};
  add_settings(settings, {{name.substr(0, dot), place, section}}, "");
}

std::shared_ptr<const AutomatonFile> parsed(const std::string& name, const std::string& text) {
  auto file = std::make_shared<AutomatonFile>();
  file->text = text;
  file->sha256 = sha256_hex(text);
  file->automaton = automaton_from_json(text, name);
  return file;
}

constexpr const char* kExternal = " (external)";  // ends the names that record() gives

// The program's models; only their names are known without torch.
void check_model_name(const RunConfig& config) {
  static const std::vector<std::string> names = {
#define SB_MODEL(name, ...) #name,
#include "base/models.def"
#undef SB_MODEL
  };
  const std::string& name = config.model.name;
  if (name.ends_with(kExternal) || std::find(names.begin(), names.end(), name) != names.end()) return;
  const std::string hint = did_you_mean(name, names);
  throw bad_input("model.name", "unknown model '" + printable(name) + "'" +
                                    (hint.empty() ? ", expected one of " + join_or(names) : hint));
}

std::shared_ptr<const Config> resolved(Config config) {
  ModelRules rules;
  rules.checks = {check_model_name};
  ConfigFiles files;
  if (config.automaton) files.automata[config.settings.at("grammar.automaton").value.text()[0]] = config.automaton;
  config.resolved = resolve(config.settings, rules, config.name, &files);
  config.automaton = config.resolved.values.grammar.file;
  return std::make_shared<const Config>(std::move(config));
}

std::vector<Item> items_of(const Config& config) {
  std::vector<Item> out;
  for (const auto& [name, setting] : config.settings)
    out.emplace_back(name, to_python(setting.value), setting.origin.text());
  return out;
}

// The id of the run whose config.toml this is: the one its intact config.json tells.
std::optional<std::string> run_of(const std::filesystem::path& path) {
  if (path.filename() != "config.toml") return std::nullopt;
  try {
    return check_identity(path.has_parent_path() ? path.parent_path().string() : ".").run_id;
  } catch (const Error&) {  // another program's config.json, or an edited config.toml
    return std::nullopt;
  }
}

// Without the program's id in its first line unless the config is a run's.
std::string toml_of(const Config& config) {
  ResolvedConfig shown = config.resolved;
  if (config.run_id) shown.run_id = *config.run_id;
  std::string text = config_toml(shown, false);
  if (!config.run_id) text.erase(0, text.find('['));
  return text;
}

std::optional<std::pair<std::string, std::string>> automaton_of(const Config& config) {
  if (!config.automaton) return std::nullopt;
  return std::pair(config.resolved.values.grammar.automaton, config.automaton->text);
}

}  // namespace

std::shared_ptr<const Config> make_config(const std::vector<Item>& items, const std::string& name,
                                          const std::optional<std::pair<std::string, std::string>>& automaton) {
  Config config;
  config.name = name;
  for (const auto& item : items) add_item(config.settings, item);
  if (automaton && config.settings.contains("grammar.automaton")) {
    config.automaton = parsed(automaton->first, automaton->second);
    config.settings["grammar.automaton"].value.content = automaton->first;
  }
  return resolved(std::move(config));
}

std::shared_ptr<const Config> read_config(const std::string& path, const std::vector<std::string>& overrides,
                                          const std::string& shipped) {
  const std::string text = read_config_text(path);
  if (is_suite(text, path))
    throw bad_input("config",
                    printable(path, 400) +
                        " is a suite of several runs, expected the config of one run; `selectivbench suite` "
                        "runs a suite and writes each run's config to FOLDER/RUN/config.toml: read one of those");
  Config config;
  config.name = path;
  config.settings = parse_settings(text, path, shipped);
  add_overrides(config.settings, overrides);
  if (overrides.empty()) config.run_id = run_of(path);
  return resolved(std::move(config));
}

void bind_config(py::module_& m) {
  py::class_<Config, std::shared_ptr<Config>>(m, "Config")
      .def(py::init([](const std::vector<Item>& items, const std::string& name,
                       const std::optional<std::pair<std::string, std::string>>& automaton) {
             return std::const_pointer_cast<Config>(make_config(items, name, automaton));
           }),
           py::arg("items"), py::arg("name"), py::arg("automaton") = py::none())
      .def_static(
          "read",
          [](const std::string& path, const std::vector<std::string>& overrides, const std::string& shipped) {
            return std::const_pointer_cast<Config>(read_config(path, overrides, shipped));
          },
          py::arg("path"), py::arg("overrides"), py::arg("shipped"))
      .def_readonly("name", &Config::name)
      .def_property_readonly("items", &items_of)
      .def_property_readonly("automaton", &automaton_of)
      .def_readwrite("run_id", &Config::run_id)
      .def_property_readonly("canonical", [](const Config& c) { return c.resolved.canonical; })
      .def_property_readonly("json", [](const Config& c) { return config_json(c.resolved); })
      .def_property_readonly("toml", &toml_of);
  m.def(
      "config_keys", [] { return parameter_json({}); }, "Every key with range, default and meaning, as JSON.");
}

}  // namespace sb::python
