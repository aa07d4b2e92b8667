#pragma once
#include <map>
#include <string>

#include "base/sha256.h"
#include "tasks/task_registry.h"

namespace sb::test {

// Sentences of a few words in random order: `bytes` of text.
inline std::string sentences(size_t bytes) {
  const char* words[] = {"the cat ", "sat on ", "a mat ", "and ", "slept. ", "then ", "it ran ", "home. "};
  std::string text;
  for (uint64_t x = 1; text.size() < bytes;) {
    x = x * 6364136223846793005 + 1442695040888963407;
    text += words[x >> 61];
  }
  text.resize(bytes);
  return text;
}

inline std::shared_ptr<const TaskFile> task_file(const std::string& bytes) {
  return std::make_shared<const TaskFile>(TaskFile{"corpus.txt", bytes, sha256_hex(bytes)});
}

// A task with its default keys but these. Keys that name files have `file`.
inline std::shared_ptr<const Task> example(const std::string& kind, int length,
                                           const std::map<std::string, TaskValue>& keys = {},
                                           const std::string& file = sentences(20000)) {
  TaskSetup setup;
  setup.kind = kind;
  setup.seed = 7;
  setup.length = length;
  for (const TaskKey& key : find_task(kind).keys) {
    setup.keys[key.name] = key.initial;
    if (key.file) setup.files[key.name] = task_file(file);
  }
  for (const auto& [key, value] : keys) setup.keys[key] = value;
  return make_task(setup);
}

}  // namespace sb::test
