// Records the predictions of the network and of the exact filter on the first samples of a split, per element.
#pragma once
#include <functional>
#include <vector>

#include "config/data.h"
#include "models/network.h"
#include "store/result.h"

namespace sb {

// Records the first recorded_samples samples, up to recorded_elements elements each. Each prediction is a distribution
// over states; with the objective `predict`, over the next element's symbol, which for the filter follows from its
// posterior and the grammar. There are no filter predictions if the task has no oracle, and no records if the task asks
// for numbers. `stop` is polled between chunks of frames; if it returns true, throws Stopped.
std::vector<SampleRecord> record_samples(const Network& network, const Task& task, Split split, int chunk,
                                         const std::function<bool()>& stop = {});

}  // namespace sb
