// For tests: fills new buffers with NaN, so that elements which are never written become visible.
#pragma once

namespace sb::kernels {

void poison_buffers(bool on);
bool buffers_are_poisoned();

}  // namespace sb::kernels
