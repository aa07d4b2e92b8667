// Benchmark of whole mixers (one layer without the network around it): our kernels against plain ATen operations.
#pragma once
#include "kernels/bench.h"

namespace sb {

// Returns rows named "layer <model>", at the shapes of bench_kernels. Backward passes include all parameter gradients.
std::vector<KernelRow> bench_layers(const KernelBenchOptions& options, const MachineRates& rates,
                                    const RowSink& done = {});

}  // namespace sb
