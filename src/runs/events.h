// TensorBoard event files: scalar summaries in TFRecord frames.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runs/metrics.h"

namespace sb {

uint32_t crc32c(const void* data, size_t size);  // Castagnoli, reflected
uint32_t masked_crc32c(const void* data, size_t size);

// A whole event file: one event a row, tags "phase/name", values that are not finite left out.
// `wall` gives seconds since 1970 by update; a row without one takes the last before it.
std::string encode_events(const std::vector<MetricRow>& rows, const std::map<int64_t, double>& wall);

}  // namespace sb
