// Whole mixers (one layer without the network around it) against themselves in plain ATen operations.
#pragma once
#include "kernels/bench.h"

namespace sb {

// Rows named "layer <model>", at the shapes of bench_kernels; backward passes make every parameter's gradient too.
std::vector<KernelRow> bench_layers(const KernelBenchOptions& options, const MachineRates& rates,
                                    const RowSink& done = {});

}  // namespace sb
