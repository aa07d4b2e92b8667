#include "kernels/plain_mode.h"

#include <atomic>

namespace sb::kernels {
namespace {

std::atomic<bool> on{false};

}  // namespace

bool plain_mode() {
  return on.load(std::memory_order_relaxed);
}

PlainMode::PlainMode() : before_(on.exchange(true)) {}
PlainMode::~PlainMode() {
  on.store(before_);
}

}  // namespace sb::kernels
