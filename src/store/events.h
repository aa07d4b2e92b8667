// TensorBoard event files: scalar summaries in TFRecord frames.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/metrics.h"

namespace sb {

uint32_t crc32c(const void* data, size_t size);  // Castagnoli, reflected
uint32_t masked_crc32c(const void* data, size_t size);

// A complete event file: one event per row with tags "phase/name"; non-finite values are omitted. A value "wall"
// (seconds since 1970) in a row of `timing` dates the row of the same update and phase. A row without a time takes the
// time of the row before; leading rows take the earliest time of all.
std::string encode_events(const std::vector<MetricRow>& rows, const std::vector<MetricRow>& timing);

}  // namespace sb
