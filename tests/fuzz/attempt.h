// What every reader of files promises: it reads, or refuses with one line.
#pragma once
#include <cstdlib>
#include <string>

#include "base/error.h"

inline void expect(bool holds) {
  if (!holds) std::abort();
}

template <class Read>
void attempt(const Read& read) {
  try {
    read();
  } catch (const sb::Error& error) {
    const std::string line = error.what();
    expect(error.code() == sb::Exit::bad_input && line.starts_with("[") && line.find('\n') == std::string::npos);
    expect(line.size() < 2000);
  }
}
