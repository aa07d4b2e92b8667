#include "cli/program.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <map>
#include <new>
#include <system_error>

#include "base/suggest.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/output.h"

namespace sb::cli {
namespace {

constexpr size_t kHelpColumn = 34;

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  return names;
}

// The command the arguments name: the innermost that was parsed.
const CLI::App& innermost(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().back();
  return *at;
}

std::string path_of(const CLI::App& app) {
  std::string path;
  for (const CLI::App* at = &app; at->get_parent() != nullptr; at = at->get_parent()) {
    path = at->get_name() + (path.empty() ? "" : " ") + path;
  }
  return path.empty() ? "selectivbench" : path;
}

Error unexpected(const CLI::App& app, const std::string& argument) {
  if (argument.starts_with("-") && argument.size() > 1) {
    const std::string name = argument.substr(0, argument.find('='));
    const auto names = option_names(app);
    const std::string program = app.get_parent() == nullptr ? "" : "selectivbench ";
    const std::string help = "; `" + program + path_of(app) + " --help` lists the options";
    return bad_input(path_of(app), "unknown option '" + printable(name) + "'" +
                                       (nearest(name, names).empty() ? help : did_you_mean(name, names)));
  }
  const auto names = command_names(app);
  if (names.empty()) return bad_input(path_of(app), "unexpected argument '" + printable(argument) + "'");
  return bad_input(path_of(app), "unknown command '" + printable(argument) + "'" + did_you_mean(argument, names) +
                                     (nearest(argument, names).empty() ? ", expected " + join_or(names) : ""));
}

// An argument that no command on this path accepts; options first.
std::string leftover(const CLI::App& app) {
  std::string found;
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const auto& argument : at->remaining()) {
      if (argument.starts_with("-") && argument.size() > 1) return argument;
      if (found.empty()) found = argument;
    }
  }
  return found;
}

// The first word that no command accepts, preceded by the path of its command.
std::string unknown_path(const CLI::App& app) {
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    const auto words = at->remaining();
    if (!words.empty()) return (at->get_parent() == nullptr ? "" : path_of(*at) + " ") + words.front();
  }
  return "";
}

// Converts an error of CLI11 to one in our format, with the command's name.
Error translated(const CLI::App& root, const CLI::ParseError& error, const std::map<std::string, std::string>& absent) {
  const CLI::App& app = innermost(root);
  if (const auto found = absent.find(unknown_path(app)); found != absent.end())
    return bad_input(found->first, found->second);
  const std::string left = leftover(app);
  const auto names = command_names(app);
  if (!left.empty()) return unexpected(app, left);
  if (error.get_name() == "RequiredError" && !names.empty()) {
    return bad_input(path_of(app), "a command is missing, expected " + join_or(names));
  }
  std::string line = error.what();
  line.erase(std::min(line.find('\n'), line.size()));
  const size_t colon = line.find(':');
  if (error.get_name() == "ArgumentMismatch" && colon != std::string::npos && line.ends_with("missing")) {
    return bad_input(path_of(app) + " " + line.substr(0, colon), "expected a value, got none");
  }
  return bad_input(path_of(app), printable(line, 200));
}

// Runs the action; flushes the output even if the action fails.
Exit work(const std::function<Exit()>& action) {
  try {
    return action();
  } catch (...) {
    try {
      finish_output();
    } catch (const Error&) {  // the first failure is the one to report
    }
    throw;
  }
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// libtorch's allocators throw an error of their own.
bool is_about_memory(const std::string& line) {
  for (const char* words : {"not enough memory", "can't allocate memory", "out of memory", "Cannot allocate memory",
                            "CUBLAS_STATUS_ALLOC_FAILED"})
    if (line.find(words) != std::string::npos) return true;
  return false;
}

}  // namespace

Failure failure_of(const std::exception& error) {
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return {ours->code(), ours->what()};
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return {Exit::bad_input, "[memory] not enough memory for this command"};
  if (dynamic_cast<const std::filesystem::filesystem_error*>(&error) != nullptr)
    return {Exit::bad_input, std::string("[file] ") + error.what()};
  if (dynamic_cast<const std::system_error*>(&error) != nullptr)
    return {Exit::bad_input, std::string("[memory] cannot start a thread: ") + error.what()};
  const std::string line = first_line(error.what());
  if (is_about_memory(line)) return {Exit::bad_input, "[memory] not enough memory for this command: " + line};
  return {Exit::check_failed, "[internal] " + line};
}

struct Program::Impl {
  CLI::App app{"SelectivBench measures how well sequence models keep relevant information and drop the rest.",
               "selectivbench"};
  std::map<std::string, CLI::App*> groups;
  std::map<std::string, std::string> absent;  // reasons by path
  std::deque<Arguments> arguments;
  std::function<Exit()> action;

  void dress(CLI::App& sub) {
    sub.get_formatter()->column_width(kHelpColumn);
    sub.set_help_flag("-h,--help", "Print this help");
  }
};

Program::Program() : impl_(std::make_unique<Impl>()) {
  impl_->dress(impl_->app);
  impl_->app.set_version_flag("--version",
                              std::string("selectivbench ") + program_version() + ", compiled for " SB_PROCESSOR);
  impl_->app.require_subcommand(1);
  impl_->app.footer(
      "Every command explains itself: selectivbench COMMAND --help\n"
      "Exit codes: 0 done, 1 a check failed, 2 bad input, 69 the scheduler refused or did not answer,\n"
      "74 could not write, 75 stopped (the same command resumes), 76 another process took over the run,\n"
      "79 a rank was lost (the same command resumes).\n"
      "Ctrl-C saves a run in progress, and ends other commands at once. A second Ctrl-C after two seconds ends at once."
      "\n\n"
      "Example:\n  selectivbench grammar --vocab 6 --ambiguities 2 --depth 3");
}

Program::~Program() = default;

Arguments& Program::group(const std::string& name, const std::string& what, std::function<Exit()> action) {
  CLI::App* made = impl_->groups[name] = impl_->app.add_subcommand(name, what);
  impl_->dress(*made);
  const bool acts = static_cast<bool>(action);
  if (acts)
    made->callback([this, made, action = std::move(action)] {
      if (made->get_subcommands().empty()) impl_->action = action;
    });
  else
    made->require_subcommand(1);
  made->footer(acts ? "Example:\n  selectivbench " + name : "");  // else the program's own
  return impl_->arguments.emplace_back(*made, name);
}

Arguments& Program::command(const std::string& path, const std::string& what, const std::vector<std::string>& examples,
                            std::function<Exit()> action) {
  CLI::App* parent = &impl_->app;
  std::string name = path;
  if (const size_t space = path.find(' '); space != std::string::npos) {
    const std::string group = path.substr(0, space);
    name = path.substr(space + 1);
    if (!impl_->groups.contains(group)) this->group(group, "Measure the speed of data, kernels and training");
    parent = impl_->groups[group];
    if (parent->get_footer().empty()) parent->footer("Example:\n  selectivbench " + path);
  }
  CLI::App* sub = parent->add_subcommand(name, what);
  impl_->dress(*sub);
  std::string footer = examples.size() == 1 ? "Example:" : "Examples:";
  for (const auto& example : examples) footer += "\n  " + example;
  sub->footer(footer);
  sub->callback([this, action = std::move(action)] { impl_->action = action; });
  return impl_->arguments.emplace_back(*sub, path);
}

void Program::absent(const std::vector<std::string>& paths, const std::string& why) {
  for (const auto& path : paths) impl_->absent[path] = why;
}

int Program::run(int argc, const char* const* argv) {
  try {
    try {
      impl_->app.parse(argc, argv);
    } catch (const CLI::Success& help) {
      std::string text = help.get_name() == "CallForHelp"      ? impl_->app.help()
                         : help.get_name() == "CallForAllHelp" ? impl_->app.help("", CLI::AppFormatMode::All)
                                                               : std::string(help.what()) + "\n";
      print(text);
      finish_output();
      return 0;
    } catch (const CLI::ParseError& error) {
      throw translated(impl_->app, error, impl_->absent);
    }
    const Exit code = work(impl_->action);
    finish_output();
    return static_cast<int>(code);
  } catch (const Error& error) {
    complain_of_all(error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    complain(failure.line);
    return static_cast<int>(failure.code);
  }
}

}  // namespace sb::cli
