#include "base/error.h"
#include "train/gpu.h"
#include "train/trainer.h"

namespace sb {

const GpuFacts& gpu_facts() {
  static const GpuFacts facts = [] {
    GpuFacts out;
    out.missing = "this build trains on the CPU only; `make gpu` builds for a GPU";
    return out;
  }();
  return facts;
}

void prepare_gpu(bool) {
  throw bad_input("train.device", "expected cpu, got cuda: " + gpu_facts().missing);
}
void wait_for_gpu() {}
std::function<void()> gpu_marker() {
  return {};
}
std::function<void()> gpu_recorded(const std::function<void()>& call) {
  return call;
}
double gpu_seconds(const std::function<void()>&) {
  prepare_gpu(false);
  return 0;
}
void reset_gpu_peak() {}
int64_t gpu_peak_bytes() {
  return 0;
}

std::unique_ptr<Executor> gpu_executor(Trainer&) {
  prepare_gpu(false);
  return nullptr;
}

}  // namespace sb
