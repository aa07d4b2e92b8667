#include "tasks/task.h"

#include <algorithm>
#include <numeric>

namespace sb {

void Task::fill(Split split, uint64_t first, int count, Batch& out, int pad_to) const {
  std::vector<uint64_t> samples(static_cast<size_t>(std::max(0, count)));
  std::iota(samples.begin(), samples.end(), first);
  fill(split, samples, out, pad_to);
}

}  // namespace sb
