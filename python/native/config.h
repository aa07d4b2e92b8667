// A resolved config with the settings it came from, so that other configs can build on it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "config/config_file.h"
#include "native/common.h"

namespace sb::python {

// "section.key", the value, and the location that messages name.
using Item = std::tuple<std::string, py::object, std::string>;

struct Config {
  std::string name;  // used instead of a file name in messages
  Settings settings;
  std::shared_ptr<const AutomatonFile> automaton;  // null if the grammar is built
  ResolvedConfig resolved;                         // its run id is the program's for external models alone
  std::optional<std::string> run_id;               // of the run folder that the config was read from
};

// `automaton`: name and text of the file that grammar.automaton names. Throws bad_input, one line per fault.
std::shared_ptr<const Config> make_config(const std::vector<Item>& items, const std::string& name,
                                          const std::optional<std::pair<std::string, std::string>>& automaton);
// `shipped`: folder of the configs that come with the package, for `extends`. Throws bad_input for a suite.
std::shared_ptr<const Config> read_config(const std::string& path, const std::vector<std::string>& overrides,
                                          const std::string& shipped);

}  // namespace sb::python
