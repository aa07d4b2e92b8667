// A run of one number, for tests of what is written where and by whom.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include "../config/model_rules.h"
#include "base/error.h"
#include "plain_result.h"
#include "scripted_file_system.h"
#include "store/run_check.h"
#include "store/run_store.h"

namespace sb::test {

inline ResolvedConfig toy_config() {
  return resolve_text("[train]\nupdates = 8\n");
}

// A trainer of one number, whose every step depends on the one before; saves every second update.
struct ToyRun {
  double weight = 1;
  int64_t update = 0;

  std::vector<NamedBytes> tensors() const { return {{"weight", "F64", {1}, &weight}}; }

  void run(const std::string& root, FileSystem&& files = ScriptedFileSystem(), LockWatch* watch = nullptr) {
    RunStore store(root, toy_config(), files, watch);
    if (has_result(store.folder())) return;
    std::vector<std::string> warnings;
    if (const auto checkpoint = store.resume(warnings)) {
      update = checkpoint->update;
      weight = checkpoint->file.at("weight").as_doubles().front();
    }
    while (update < 8) {
      weight = weight * 1.5 + static_cast<double>(update);
      ++update;
      store.add({update, "train", {{"loss", 1 / weight}}});
      store.add_timing({update, "train", {{"wall", 1e9 + static_cast<double>(::getpid())}}});
      if (update % 2 == 0) store.save(update, tensors());
    }
    Result result = plain_result(toy_config());
    result.topological_entropy = weight;
    result.made.emplace().host = std::to_string(::getpid());
    store.finish(result, tensors());
  }
};

// Runs `act` in a process of its own; its exit status, or 128 + signal.
template <class Act>
int in_child(const Act& act) {
  const pid_t child = ::fork();
  if (child == 0) {
    act();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace sb::test
