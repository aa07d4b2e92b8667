// Tests fill fresh buffers with NaN, so that an element nobody writes shows.
#pragma once

namespace sb::kernels {

void poison_buffers(bool on);
bool buffers_are_poisoned();

}  // namespace sb::kernels
