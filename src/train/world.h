// The processes that train one run together. Each makes the gradients of its rows of every batch; they are summed
// here, and all make the same update of the same weights. rank_groups.h has what makes the sums.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "runs/world.h"

namespace sb {

// What another rank ended with, or that it is lost: this one ends with the same code.
class WorldEnded : public Error {
 public:
  WorldEnded(Exit code, const std::string& line, bool said) : Error(code, line), said_(said) {}
  bool said() const { return said_; }  // by rank 0: this one need not

 private:
  bool said_;
};

// How rank 0 tells the others what came of what it does alone.
enum class Order : int { go_on = 0, done = 1, diverged = 2, stopped = 3 };

class World {
 public:
  explicit World(RankPlace place) : place_(std::move(place)) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  bool writes() const { return rank() == 0; }
  const RankPlace& place() const { return place_; }
  std::pair<int, int> rows(int batch) const { return rows_of_rank(batch, rank(), size()); }

  // Of all calls below: every rank makes the same ones in the same order, and each throws WorldEnded once a rank ended
  // with an error or, within place().patience, is lost (Exit::lost_rank, with a line that names it).

  // Sums over the ranks into `gradients` (flat) and `loss` ([1] float64) of each of them: the same bytes on all.
  virtual void reduce(at::Tensor gradients, at::Tensor loss) = 0;
  void wish_to_stop(bool yes) { wishes_ = yes; }  // told to the others by the next reduce()
  bool stopping() const { return stopping_; }     // a rank wished to at the last one
  virtual void share(at::Tensor values) = 0;      // rank 0's to all
  Order share(Order mine);

  // Any thread, often: this rank is at work. It counts as lost where it neither says so nor waits for others.
  virtual void alive() = 0;
  // `stop`: whether this rank wishes to stop, asked from another thread for as long as the world lasts.
  virtual void listen(std::function<bool()> stop) = 0;
  // On rank 0, any thread: one of the ranks wishes to, learnt within a second whatever the ranks do meanwhile.
  virtual bool stop_asked() const = 0;
  // Any thread: a rank is known to be lost or to have ended with an error; the next call above throws it.
  virtual bool ended() const = 0;
  // This rank ends with an error, and the others with the same code. Returns what all end with: another may have been
  // first.
  virtual WorldEnded fail(Exit code, const std::string& line) = 0;
  // All ranks are through: nothing is asked of the others any more.
  virtual void leave() = 0;
  // What ends the process where it cannot even unwind: a card that hangs in a sum with a lost rank lets nobody wait for
  // anything. Does not return.
  void end_with(std::function<void(const WorldEnded&)> end) { end_ = std::move(end); }

 protected:
  void give_up(const WorldEnded& end) const {
    if (end_) end_(end);
  }

  bool wishes_ = false, stopping_ = false;

 private:
  RankPlace place_;
  std::function<void(const WorldEnded&)> end_;
};

// Meets the others; `identity`, lines KEY=VALUE, must be the same on all ranks (what is run, by what build). `gpu`: the
// tensors of reduce() are on the first GPU that this process sees. Throws Error(bad_input) where this build has no
// process groups for them, ranks do not come or differ. Where the world has failed (WorldEnded), its threads may hang
// in others' code: the process is to end by _exit.
std::unique_ptr<World> join_world(const RankPlace& place, const std::string& identity, bool gpu);
// What process groups this build has: "gloo", for a GPU "nccl"; empty: none, and why.
std::string world_backend(bool gpu);
std::string world_fault(bool gpu);

}  // namespace sb
