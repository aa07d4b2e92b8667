// ProcessGroup with libtorch's gloo backend: sums over TCP, in the host's memory.
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "train/ranks/rank_groups.h"
#include "train/ranks/watched_group.h"

namespace sb {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
using Tensors = std::vector<at::Tensor>;

bool finished_within(c10d::Work& work, std::chrono::milliseconds time) {
  try {
    work.wait(time);
  } catch (const std::exception&) {
    if (!work.isCompleted()) return false;
    work.wait();  // throws if the error was not a timeout
  }
  return true;
}

class GlooGroup final : public WatchedGroup {
 public:
  GlooGroup(const RankPlace& place, const std::string& identity) : WatchedGroup(place, identity) {
    const auto made = std::make_shared<Group>();
    await_call([made, place, store = watch_.store(), own = watch_.own_address()] {
      auto options = c10d::ProcessGroupGloo::Options::create(kForEver);
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own));
      *made = c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.size, options);
    });
    group_ = *made;
  }

  // A group with unfinished work cannot be destroyed, so it is leaked.
  ~GlooGroup() override {
    if (group_) static_cast<void>(group_.release());
  }

  void all_reduce(at::Tensor gradients, at::Tensor loss) override {
    Tensors large = {gradients}, small = {at::zeros({2}, at::kDouble)};
    double* figures = small[0].data_ptr<double>();
    figures[0] = loss.item<double>();
    figures[1] = wishes_ ? 1 : 0;
    const auto sums = group_->allreduce(large), sum_of_figures = group_->allreduce(small);
    await([&](Milliseconds time) { return finished_within(*sums, time); });
    await([&](Milliseconds time) { return finished_within(*sum_of_figures, time); });
    loss.fill_(figures[0]);
    stopping_ = figures[1] > 0;
  }

  using ProcessGroup::broadcast;
  void broadcast(at::Tensor values) override {
    Tensors shared = {values};
    const auto arrival = group_->broadcast(shared);
    await([&](Milliseconds time) { return finished_within(*arrival, time); });
  }

  void leave() override {
    watch_.close();
    // The store ends with rank 0, so all ranks wait here until none needs it any more.
    try {
      Tensors nothing = {at::zeros({1})};
      const auto farewell = group_->allreduce(nothing);
      if (finished_within(*farewell, patience())) group_.reset();
    } catch (const std::exception&) {  // a rank has already exited, which does no harm now
      group_.reset();
    }
  }

 private:
  Group group_;
};

}  // namespace

std::string gloo_fault() {
  return "";
}

std::unique_ptr<ProcessGroup> gloo_group(const RankPlace& place, const std::string& identity) {
  return std::make_unique<GlooGroup>(place, identity);
}

}  // namespace sb
