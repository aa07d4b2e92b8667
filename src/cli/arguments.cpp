#include "cli/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/number.h"
#include "base/suggest.h"
#include "base/text.h"

namespace sb::cli {
namespace {

template <class T>
T checked(const std::string& where, const std::string& text, std::optional<T> value, T low, T high, const char* kind) {
  if (value && *value >= low && *value <= high) return *value;
  const auto shown = [](T v) {
    if constexpr (std::is_floating_point_v<T>)
      return shortest(v);
    else
      return std::to_string(v);
  };
  throw bad_input(where, std::string("expected ") + kind + " " + shown(low) + " to " + shown(high) + ", got '" +
                             printable(text) + "'");
}

int checked_int(const std::string& where, const std::string& text, int low, int high) {
  return static_cast<int>(checked<int64_t>(where, text, parse_integer(text), low, high, "a whole number from"));
}

}  // namespace

void Arguments::option(const std::string& name, const std::string& value, const std::string& shown_default,
                       const std::string& help, Setter set) {
  auto* option = app_.add_option_function<std::string>(name, std::move(set), help);
  option->type_name(value)->group(heading_);
  if (!shown_default.empty()) option->default_str(shown_default);
}

void Arguments::flag(const std::string& name, bool& target, const std::string& help) {
  app_.add_flag(name, target, help)->group(heading_);
}

void Arguments::text(const std::string& name, std::string& target, const std::string& value, const std::string& help) {
  option(name, value, target, help, [&target, where = where(name)](const std::string& text) {
    if (text.empty()) throw bad_input(where, "expected a value, got nothing");
    target = text;
  });
}

void Arguments::texts(const std::string& name, std::vector<std::string>& target, const std::string& value,
                      const std::string& help) {
  auto* option = app_.add_option(name, target, help);
  option->type_name(value)->group(heading_)->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void Arguments::integer(const std::string& name, int& target, int low, int high, const std::string& help) {
  option(name, "N", std::to_string(target), help, [&target, low, high, where = where(name)](const std::string& text) {
    target = checked_int(where, text, low, high);
  });
}

void Arguments::integer(const std::string& name, uint64_t& target, uint64_t low, uint64_t high,
                        const std::string& help) {
  option(name, "N", std::to_string(target), help, [&target, low, high, where = where(name)](const std::string& text) {
    target = checked<uint64_t>(where, text, parse_unsigned(text), low, high, "a whole number from");
  });
}

void Arguments::integer(const std::string& name, std::optional<int>& target, int low, int high,
                        const std::string& help) {
  option(name, "N", "", help, [&target, low, high, where = where(name)](const std::string& text) {
    target = checked_int(where, text, low, high);
  });
}

void Arguments::real(const std::string& name, double& target, double low, double high, const std::string& help) {
  option(name, "X", shortest(target), help, [&target, low, high, where = where(name)](const std::string& text) {
    target = checked<double>(where, text, parse_finite(text), low, high, "a number from");
  });
}

void Arguments::real(const std::string& name, std::optional<double>& target, double low, double high,
                     const std::string& help) {
  option(name, "X", "", help, [&target, low, high, where = where(name)](const std::string& text) {
    target = checked<double>(where, text, parse_finite(text), low, high, "a number from");
  });
}

void Arguments::density(const std::string& name, double& target, const std::string& help) {
  option(name, "X", "auto", help, [&target, where = where(name)](const std::string& text) {
    target = text == "auto" ? -1 : checked<double>(where, text, parse_finite(text), 0, 1, "auto or a number from");
  });
}

void Arguments::choice(const std::string& name, std::string& target, const std::vector<std::string>& names,
                       const std::string& help) {
  const size_t end = std::min(help.find(';'), help.size());  // the values follow what the option is
  option(name, "NAME", target, help.substr(0, end) + ": " + join_or(names) + help.substr(end),
         [&target, names, where = where(name)](const std::string& text) {
           if (std::find(names.begin(), names.end(), text) == names.end()) {
             throw bad_input(
                 where, "expected " + join_or(names) + ", got '" + printable(text) + "'" + did_you_mean(text, names));
           }
           target = text;
         });
}

void Arguments::positional(const std::string& name, std::string& target, bool required, const std::string& help) {
  app_.add_option(name, target, help)->required(required)->type_name("");
}

void Arguments::positionals(const std::string& name, std::vector<std::string>& target, bool required,
                            const std::string& help) {
  app_.add_option(name, target, help)->required(required)->type_name("");
}

bool Arguments::given(const std::string& name) const {
  const CLI::Option* option = app_.get_option_no_throw(name);
  return option != nullptr && option->count() > 0;
}

}  // namespace sb::cli
