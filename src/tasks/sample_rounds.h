// Work on many samples in rounds that fit into memory.
#pragma once
#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "tasks/ceiling.h"

namespace sb {

// Calls add(walk(sample)) for every sample in order. make_walk() gives each thread a walk of its own.
template <class MakeWalk, class Add>
void for_each_sample(const Task& task, const CeilingRequest& request, const MakeWalk& make_walk, const Add& add) {
  constexpr size_t most_grain = 16;
  if (request.samples == 0) throw bad_input("ceiling", "samples, expected at least 1, got 0");
  const size_t most = samples_a_round(task, request.split, request.threads);
  const size_t each = most / static_cast<size_t>(thread_count(request.threads, most));
  for (uint64_t done = 0; done < request.samples;) {
    const size_t round = static_cast<size_t>(std::min<uint64_t>(most, request.samples - done));
    std::vector<decltype(make_walk()(uint64_t{}))> figures(round);
    parallel_for(round, std::clamp<size_t>(each, 1, most_grain), request.threads, [&](size_t begin, size_t end) {
      auto walk = make_walk();
      for (size_t i = begin; i < end; ++i) figures[i] = walk(request.first + done + i);
    });
    for (const auto& one : figures) add(one);
    done += round;
    if (request.progress) request.progress(done);
  }
}

}  // namespace sb
