// TensorBoard event files: scalar summaries in TFRecord frames.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runs/metrics.h"

namespace sb {

uint32_t crc32c(const void* data, size_t size);  // Castagnoli, reflected
uint32_t masked_crc32c(const void* data, size_t size);

// A whole event file: one event a row, tags "phase/name", values that are not finite left out.
// A value "wall" (seconds since 1970) of a row of `timing` dates the row of the same update and phase; rows without one
// take the last before them, the first ones the earliest of all.
std::string encode_events(const std::vector<MetricRow>& rows, const std::vector<MetricRow>& timing);

}  // namespace sb
