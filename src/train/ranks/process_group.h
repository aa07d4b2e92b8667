// ProcessGroup: the processes ("ranks") that train one run together. Each rank computes the gradients of its rows of
// every batch. The group sums the gradients, and all ranks make the same update of the same weights. rank_groups.h has
// the implementations.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "config/rank_place.h"

namespace sb {

// A rank has failed or is lost; all ranks exit with this code.
class GroupEnded : public Error {
 public:
  GroupEnded(Exit code, const std::string& line, bool already_reported)
      : Error(code, line), already_reported_(already_reported) {}
  bool already_reported() const { return already_reported_; }  // rank 0 prints the message, so this rank need not

 private:
  bool already_reported_;
};

// Sent by rank 0 to the others after the work that it does alone, such as an evaluation.
enum class Order : int { go_on = 0, done = 1, diverged = 2, stopped = 3 };

class ProcessGroup {
 public:
  explicit ProcessGroup(RankPlace place) : place_(std::move(place)) {}
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;
  virtual ~ProcessGroup() = default;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  bool writes() const { return rank() == 0; }
  const RankPlace& place() const { return place_; }
  std::pair<int, int> rows(int batch) const { return rows_of_rank(batch, rank(), size()); }

  // Collective calls: all_reduce() and broadcast(). Every rank must make the same ones in the same order. They throw
  // GroupEnded if a rank has failed, or if a rank is lost (Exit::lost_rank, with a message that names it): its
  // connection broke, or it sent no heartbeat for place().timeout_seconds seconds.

  // All-reduce: replaces `gradients` (flat) and `loss` ([1] float64) by their sums over ranks, the same bytes on each.
  virtual void all_reduce(at::Tensor gradients, at::Tensor loss) = 0;
  void wish_to_stop(bool yes) { wishes_ = yes; }  // the next all_reduce() tells the other ranks
  bool stopping() const { return stopping_; }     // whether any rank wished to stop at the last all_reduce()
  virtual void broadcast(at::Tensor values) = 0;  // broadcast from rank 0, in place
  Order broadcast(Order mine);                    // returns rank 0's order

  // Reports that this rank makes progress. Call often, from any thread. A rank that neither calls this nor waits for
  // others counts as lost.
  virtual void alive() = 0;
  // `stop` tells whether this rank wishes to stop. It is polled from another thread while the group exists.
  virtual void listen(std::function<bool()> stop) = 0;
  // For rank 0, from any thread: whether a rank wishes to stop. Known within about a second, whatever the ranks do.
  virtual bool stop_asked() const = 0;
  // From any thread: whether a rank is known to have failed or to be lost. The next collective call throws.
  virtual bool ended() const = 0;
  // Reports that this rank fails; the others exit with the same code. Returns the error that all ranks end with, which
  // may be that of a rank that failed earlier.
  virtual GroupEnded fail(Exit code, const std::string& line) = 0;
  // Every rank calls this when all are done; no collective calls may follow.
  virtual void leave() = 0;
  // Sets the function that ends the process if it cannot even unwind the stack: a GPU that hangs in a sum with a lost
  // rank blocks every wait for it. `end` must not return.
  void end_with(std::function<void(const GroupEnded&)> end) { end_ = std::move(end); }

 protected:
  void give_up(const GroupEnded& end) const {
    if (end_) end_(end);
  }

  bool wishes_ = false, stopping_ = false;

 private:
  RankPlace place_;
  std::function<void(const GroupEnded&)> end_;
};

// Waits for all ranks and connects them. `identity` (lines KEY=VALUE: config and build) must be the same on all ranks.
// `gpu`: the tensors of all_reduce() are on the first GPU visible to this process. Throws Error(bad_input) if this
// build has no suitable process groups, if a rank is missing, or if identities differ. After GroupEnded, threads may
// hang in library code: end the process with _exit.
std::unique_ptr<ProcessGroup> join_group(const RankPlace& place, const std::string& identity, bool gpu);
std::string group_backend(bool gpu);  // "gloo", or "nccl" for a GPU; empty if this build does not have it
std::string world_fault(bool gpu);    // why the backend is missing; empty if this build has it

}  // namespace sb
