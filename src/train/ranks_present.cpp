// libtorch's gloo: sums over TCP between the ranks' memories.
#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "train/rank_watch.h"
#include "train/world.h"

namespace sb {
namespace {

using std::chrono::milliseconds;
using Group = c10::intrusive_ptr<c10d::ProcessGroupGloo>;
using Tensors = std::vector<at::Tensor>;

constexpr milliseconds kSlice(200);  // of waiting, between looks at what became of the others
// How long others are waited for is the watch's to say: rank 0 evaluates as long as it takes. Fits 32 bits.
constexpr milliseconds kForEver = std::chrono::hours(24 * 24);

bool finished_within(c10d::Work& work, milliseconds time) {
  try {
    work.wait(time);
  } catch (const std::exception&) {
    if (!work.isCompleted()) return false;
    work.wait();  // throws what went wrong, if it was not the time
  }
  return true;
}

class GlooWorld final : public World {
 public:
  GlooWorld(const RankPlace& place, const std::string& identity) : World(place), watch_(place, identity) {
    const auto made = std::make_shared<Group>();
    const auto done = started([made, place, store = watch_.store(), own = watch_.own_address()] {
      auto options = c10d::ProcessGroupGloo::Options::create(kForEver);
      options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own));
      *made = c10::make_intrusive<c10d::ProcessGroupGloo>(store, place.rank, place.size, options);
    });
    await([&](milliseconds time) {
      if (done.wait_for(time) != std::future_status::ready) return false;
      done.get();
      return true;
    });
    group_ = *made;
  }

  // A group with work that nobody ends cannot be taken apart.
  ~GlooWorld() override {
    if (group_) static_cast<void>(group_.release());
  }

  void reduce(at::Tensor gradients, at::Tensor loss) override {
    Tensors large = {gradients}, small = {at::zeros({2}, at::kDouble)};
    double* figures = small[0].data_ptr<double>();
    figures[0] = loss.item<double>();
    figures[1] = wishes_ ? 1 : 0;
    const auto sums = group_->allreduce(large), sum_of_figures = group_->allreduce(small);
    await([&](milliseconds time) { return finished_within(*sums, time); });
    await([&](milliseconds time) { return finished_within(*sum_of_figures, time); });
    loss.fill_(figures[0]);
    stopping_ = figures[1] > 0;
  }

  using World::share;
  void share(at::Tensor values) override {
    Tensors shared = {values};
    const auto arrival = group_->broadcast(shared);
    await([&](milliseconds time) { return finished_within(*arrival, time); });
  }

  void alive() override { watch_.alive(); }
  void listen(std::function<bool()> stop) override { watch_.listen(std::move(stop)); }
  bool stop_asked() const override { return watch_.stop_asked(); }
  bool ended() const override { return watch_.ended(); }
  WorldEnded fail(Exit code, const std::string& line) override { return watch_.fail(code, line); }

  void leave() override {
    watch_.close();
    // The store goes with rank 0: nobody asks it for anything after this.
    try {
      Tensors nothing = {at::zeros({1})};
      const auto farewell = group_->allreduce(nothing);
      const milliseconds most(static_cast<int64_t>(place().patience * 1000));
      if (finished_within(*farewell, most)) group_.reset();
    } catch (const std::exception&) {  // a rank that went away meanwhile is not missed
      group_.reset();
    }
  }

 private:
  // `finished` waits so long and says whether what is waited for is there, or throws.
  template <class Finished>
  void await(const Finished& finished) {
    const RankWatch::Waiting waiting(watch_);
    while (true) {
      std::optional<std::string> broke;
      try {
        if (finished(kSlice)) return;
      } catch (const std::exception& error) {
        broke = error.what();
      }
      if (broke) throw watch_.roll_call(*broke);
      if (const auto end = watch_.verdict()) throw *end;
    }
  }

  RankWatch watch_;
  Group group_;
};

}  // namespace

std::string world_backend() {
  return "gloo";
}

std::unique_ptr<World> join_world(const RankPlace& place, const std::string& identity) {
  return std::make_unique<GlooWorld>(place, identity);
}

}  // namespace sb
