#include "grammar/components.h"

#include <algorithm>

namespace sb {

// Tarjan's method with its own stack: automata may be deeper than the call stack.
std::vector<std::vector<int32_t>> strong_components(const Automaton& a) {
  const auto n = a.names.size();
  const auto successors = [&](int32_t s) -> std::pair<const int32_t*, const int32_t*> {
    if (s == a.end) return {a.start.data(), a.start.data() + a.start.size()};
    return {a.dst.data() + a.row[s], a.dst.data() + a.row[s + 1]};
  };
  struct Frame {
    int32_t state;
    const int32_t* next;
    const int32_t* last;
  };
  std::vector<int32_t> order(n, -1), low(n, 0), open;
  std::vector<bool> is_open(n, false);
  std::vector<Frame> frames;
  std::vector<std::vector<int32_t>> components;
  int32_t count = 0;
  const auto enter = [&](int32_t s) {
    order[s] = low[s] = count++;
    open.push_back(s);
    is_open[s] = true;
    const auto [next, last] = successors(s);
    frames.push_back({s, next, last});
  };
  for (int32_t root = 0; root < a.states(); ++root) {
    if (order[root] >= 0) continue;
    enter(root);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      if (frame.next != frame.last) {
        const int32_t to = *frame.next++;
        if (order[to] < 0) {
          enter(to);
        } else if (is_open[to]) {
          low[frame.state] = std::min(low[frame.state], order[to]);
        }
        continue;
      }
      const int32_t state = frame.state;
      frames.pop_back();
      if (!frames.empty()) low[frames.back().state] = std::min(low[frames.back().state], low[state]);
      if (low[state] != order[state]) continue;
      auto& component = components.emplace_back();
      for (int32_t member = -1; member != state;) {
        member = open.back();
        open.pop_back();
        is_open[member] = false;
        component.push_back(member);
      }
      std::sort(component.begin(), component.end());
    }
  }
  return components;
}

}  // namespace sb
