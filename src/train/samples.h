// What network and exact filter believed on the first samples of a split, element by element.
#pragma once
#include <vector>

#include "models/network.h"
#include "runs/result.h"
#include "train/data.h"

namespace sb {

// recorded_samples samples, cut at recorded_elements elements. Shares are of states; under the objective `predict` of
// the next element's symbol, the filter's being the grammar's law under its posterior.
std::vector<SampleRecord> record_samples(const Network& network, const RunData& data, Split split, int chunk);

}  // namespace sb
