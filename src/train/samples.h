// What network and exact filter believed on the first samples of a split, element by element.
#pragma once
#include <functional>
#include <vector>

#include "models/network.h"
#include "runs/data.h"
#include "runs/result.h"

namespace sb {

// recorded_samples samples, cut at recorded_elements elements. Shares are of states; under the objective `predict` of
// the next element's symbol, the filter's being the grammar's law under its posterior; nothing of a filter where the
// task has no oracle. `stop`, polled between stretches of frames, true: throws Stopped.
std::vector<SampleRecord> record_samples(const Network& network, const RunData& data, Split split, int chunk,
                                         const std::function<bool()>& stop = {});

}  // namespace sb
