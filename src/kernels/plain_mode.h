// While one of these lives, every function of fused.h and recurrence.h runs in plain ATen operations: the yardstick of
// `bench train`. For measurements only; not for use while other threads compute.
#pragma once

namespace sb::kernels {

bool plain_mode();

class PlainMode {
 public:
  PlainMode();
  ~PlainMode();
  PlainMode(const PlainMode&) = delete;
  PlainMode& operator=(const PlainMode&) = delete;

 private:
  bool before_;
};

}  // namespace sb::kernels
