// ProcessGroup with libtorch's NCCL backend: sums between the GPUs of the ranks. Other messages go through the store.
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/cuda/nccl.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/stopwatch.h"
#include "train/ranks/rank_groups.h"
#include "train/ranks/watched_group.h"

namespace sb {
namespace {

using std::chrono::milliseconds;
using Group = c10::intrusive_ptr<c10d::ProcessGroupNCCL>;
using Tensors = std::vector<at::Tensor>;
using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

constexpr double kTakingApart = 10;  // seconds for a communicator to be aborted or closed
constexpr milliseconds kTick(20);

// Disables libtorch's monitoring of NCCL, which would end the process on a failure or during a long evaluation. Also
// makes NCCL connect all at once in the first sum, which may take long, and not in the first sum of each kind.
void leave_failures_to_us() {
  for (const char* name : {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ENABLE_MONITORING",
                           "TORCH_NCCL_RETHROW_CUDA_ERRORS", "TORCH_NCCL_BLOCKING_WAIT", "NCCL_RUNTIME_CONNECT"})
    ::setenv(name, "0", 1);
}

// UUID of the GPU in hexadecimal.
std::string name_of_gpu() {
  cudaDeviceProp properties{};
  if (const cudaError_t status = cudaGetDeviceProperties(&properties, 0); status != cudaSuccess)
    throw check_failed("gpu", std::string("CUDA: ") + cudaGetErrorString(status));
  std::string out;
  for (const char byte : properties.uuid.bytes) out += formatted("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

// Marks the point in the GPU's stream after all work submitted so far, including the given sums.
class Mark {
 public:
  explicit Mark(Works works) : works_(std::move(works)) {
    for (const auto& work : works_) work->wait();  // the stream waits, not the host
    reached_.record();
  }

  // Whether the point is reached within this time. Polls often, since the next update waits for it. Throws NCCL's
  // errors.
  bool within(milliseconds time) const {
    const Stopwatch began;
    const double most = std::chrono::duration<double>(time).count();
    while (!reached_.query()) {
      const double waited = began.seconds();
      if (waited > most) {
        for (const auto& work : works_) {
          if (work->isCompleted() && work->exception()) std::rethrow_exception(work->exception());
        }
        return false;
      }
      if (waited < 0.002) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    return true;
  }

 private:
  Works works_;
  at::cuda::CUDAEvent reached_;
};

class NcclGroup final : public WatchedGroup {
 public:
  NcclGroup(const RankPlace& place, const std::string& identity) : WatchedGroup(place, identity) {
    claim_gpu();
    const auto made = std::make_shared<Group>();
    // NCCL connects the ranks in the first sum.
    await_call([made, place, store = watch_.store()] {
      auto options = c10d::ProcessGroupNCCL::Options::create();
      options->timeout = kForEver;
      const auto own_keys = c10::make_intrusive<c10d::PrefixStore>("nccl", store);
      *made = c10::make_intrusive<c10d::ProcessGroupNCCL>(own_keys, place.rank, place.size, options);
      Tensors first = {at::ones({1}, at::kCUDA)};
      (*made)->allreduce(first)->wait();
      if (const double sum = first[0].item<double>(); sum != place.size)
        throw check_failed("nccl", formatted("a sum over {} ranks, got {}", place.size, sum));
    });
    group_ = std::move(*made);
  }

  // A group with unfinished work cannot be destroyed, so it is leaked.
  ~NcclGroup() override {
    if (group_) static_cast<void>(group_.release());
  }

  // Returns when the sums are complete, so that no update uses the sums of a rank that was lost meanwhile.
  void all_reduce(at::Tensor gradients, at::Tensor loss) override {
    Tensors large = {gradients}, small = {at::cat({loss, at::full({1}, wishes_ ? 1.0 : 0.0, loss.options())})};
    await_gpu([&] { return Works{group_->allreduce(large), group_->allreduce(small)}; });
    loss.copy_(small[0].narrow(0, 0, 1));
    stopping_ = small[0].narrow(0, 1, 1).item<double>() > 0;
  }

  using ProcessGroup::broadcast;
  void broadcast(at::Tensor values) override {
    if (values.device().is_cpu()) return share_over_store(values);
    Tensors shared = {values};
    await_gpu([&] { return Works{group_->broadcast(shared)}; });
  }

  void leave() override {
    watch_.close();
    // The store ends with rank 0, so all ranks wait here until none needs it any more.
    try {
      Tensors nothing = {at::zeros({1}, at::kCUDA)};
      const Mark farewell(Works{group_->allreduce(nothing)});
      if (farewell.within(patience()) && done_within(kTakingApart, [group = group_.get()] { group->shutdown(); }))
        group_.reset();
    } catch (const std::exception&) {  // a rank has already exited, which does no harm now
    }
  }

 private:
  // NCCL does not allow two ranks on one GPU. This check gives a clearer message than NCCL's.
  void claim_gpu() {
    const auto holder = std::make_shared<std::string>();
    const std::string own = std::to_string(rank());
    await_call([holder, own, store = watch_.store()] {
      const std::string key = "gpu/" + name_of_gpu();
      put_first(*store, key, own);
      *holder = got(*store, key);
    });
    if (*holder == own) return;
    throw watch_.fail(Exit::bad_input,
                      formatted("[LOCAL_RANK] expected one GPU per rank, got one for ranks {} and {}; "
                                "LOCAL_RANK (srun: SLURM_LOCALID) is the number of a rank's GPU on its machine",
                                *holder, own));
  }

  // Submits sums with `ask` and waits for them. If the group ends meanwhile, aborts the pending sums, so that the
  // weights can still be read from the GPU.
  template <class Ask>
  void await_gpu(const Ask& ask) {
    std::optional<Mark> mark;
    try {
      await([&](Milliseconds time) {
        if (!mark) mark.emplace(ask());
        return mark->within(time);
      });
    } catch (const GroupEnded& end) {
      bool free = true;
      try {
        free = done_within(kTakingApart, [group = group_.get()] { group->abort(); });
      } catch (const std::exception&) {  // drained() checks below whether the GPU is free
      }
      if (!free || (mark && !drained(*mark))) give_up(end);
      throw;
    }
  }

  static bool drained(const Mark& mark) {
    const Stopwatch began;
    while (began.seconds() < kTakingApart) {
      try {
        if (mark.within(kSlice)) return true;
      } catch (const std::exception&) {  // NCCL reports the abort
        std::this_thread::sleep_for(kTick);
      }
    }
    return false;
  }

  // For a few bytes. Rank 0 may evaluate for a long time first; the other GPUs need not wait in a kernel for it.
  void share_over_store(const at::Tensor& values) {
    const at::Tensor flat = values.contiguous();
    const auto bytes = std::make_shared<std::string>(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
    const std::string key = formatted("share/{}", shares_++);
    if (writes()) return await_call([bytes, key, store = watch_.store()] { put(*store, key, *bytes); });
    await_call([bytes, key, store = watch_.store()] {
      while (!store->check({key})) std::this_thread::sleep_for(kTick);
      *bytes = got(*store, key);
    });
    if (bytes->size() != flat.nbytes())
      throw check_failed("nccl", formatted("{}: expected {} bytes, got {}", key, flat.nbytes(), bytes->size()));
    std::memcpy(flat.data_ptr(), bytes->data(), bytes->size());
    if (!flat.is_same(values)) values.copy_(flat);
  }

  Group group_;
  int64_t shares_ = 0;
};

}  // namespace

std::string nccl_fault() {
  // Version of the nccl.h with which libtorch was compiled. It must match ours, since libtorch's classes contain NCCL's
  // structures.
  const uint64_t theirs = torch::cuda::nccl::version();
  const uint64_t major = theirs >> 32, minor = (theirs >> 16) & 0xffff;
  if (major == NCCL_MAJOR && minor == NCCL_MINOR) return "";
  return formatted("this build has the nccl.h of NCCL {}.{}, libtorch that of {}.{}", NCCL_MAJOR, NCCL_MINOR, major,
                   minor);
}

std::unique_ptr<ProcessGroup> nccl_group(const RankPlace& place, const std::string& identity) {
  leave_failures_to_us();
  return std::make_unique<NcclGroup>(place, identity);
}

}  // namespace sb
