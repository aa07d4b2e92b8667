#include "grammar/language.h"

#include <algorithm>

#include "base/error.h"
#include "base/parallel.h"

namespace sb {
namespace {

constexpr size_t kGrain = 64;  // samples handed to a thread at a time

}  // namespace

Split parse_split(const std::string& name) {
  std::string expected;
  for (const Split split : {Split::train, Split::valid, Split::test, Split::reference}) {
    if (name == to_string(split)) return split;
    expected += std::string(expected.empty() ? "" : ", ") + to_string(split);
  }
  throw bad_input("split", "unknown name, expected one of " + expected + ", got '" + name + "'");
}

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
    case Split::reference:
      return "reference";
  }
  return "";
}

SampleBlock Language::block(Split split, uint64_t first, size_t count, int threads) const {
  check_split(split);
  const auto each = static_cast<size_t>(length());
  SampleBlock out;
  out.first = first;
  out.length = length();
  out.states.resize(count * each);
  parallel_for(count, kGrain, threads, [&](size_t begin, size_t end) {
    draw(split, first + begin, end - begin, out.states.data() + begin * each);
  });
  return out;
}

void next_symbol_law(const Language& language, int32_t state, double* law) {
  std::fill_n(law, language.classes(), 0.0);
  thread_local std::vector<Successor> next;
  language.successors(state, next);
  for (const Successor& s : next) law[language.symbols()[static_cast<size_t>(s.state)]] += s.probability;
}

std::vector<std::vector<int32_t>> forbidden_classes(const Language& language) {
  std::vector<std::vector<int32_t>> out(static_cast<size_t>(language.states()));
  std::vector<char> allowed(static_cast<size_t>(language.classes()));
  std::vector<Successor> next;
  for (int32_t s = 0; s < language.states(); ++s) {
    std::fill(allowed.begin(), allowed.end(), 0);
    if (s != language.end()) {
      language.successors(s, next);
      for (const Successor& to : next) {
        if (to.probability > 0) allowed[static_cast<size_t>(language.symbols()[static_cast<size_t>(to.state)])] = 1;
      }
    }
    for (int c = 0; c < language.classes(); ++c) {
      if (!allowed[static_cast<size_t>(c)]) out[static_cast<size_t>(s)].push_back(c);
    }
  }
  return out;
}

}  // namespace sb
