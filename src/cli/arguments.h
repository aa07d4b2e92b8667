// Options of one command. Values are checked here, so that a command receives only valid values.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sb::cli {

class Arguments {
 public:
  Arguments(CLI::App& app, std::string command) : app_(app), command_(std::move(command)) {}

  void heading(const std::string& title) { heading_ = title; }  // heading of the following options in --help
  void flag(const std::string& name, bool& target, const std::string& help);
  void text(const std::string& name, std::string& target, const std::string& value, const std::string& help);
  // May be repeated; each occurrence has one value.
  void texts(const std::string& name, std::vector<std::string>& target, const std::string& value,
             const std::string& help);
  void integer(const std::string& name, int& target, int low, int high, const std::string& help);
  void integer(const std::string& name, uint64_t& target, uint64_t low, uint64_t high, const std::string& help);
  void integer(const std::string& name, std::optional<int>& target, int low, int high, const std::string& help);
  void real(const std::string& name, double& target, double low, double high, const std::string& help);
  void real(const std::string& name, std::optional<double>& target, double low, double high, const std::string& help);
  void density(const std::string& name, double& target, const std::string& help);  // a number, or "auto" (-1)
  void choice(const std::string& name, std::string& target, const std::vector<std::string>& names,
              const std::string& help);
  void positional(const std::string& name, std::string& target, bool required, const std::string& help);
  void positionals(const std::string& name, std::vector<std::string>& target, bool required, const std::string& help);

  bool given(const std::string& name) const;  // on the command line; false if there is no such option
  std::string where(const std::string& name) const { return command_ + " " + name; }  // for error messages

 private:
  using Setter = std::function<void(const std::string&)>;
  void option(const std::string& name, const std::string& value, const std::string& shown_default,
              const std::string& help, Setter set);

  CLI::App& app_;
  std::string command_;
  std::string heading_ = "Options";
};

}  // namespace sb::cli
