// Ranks watch each other over a key-value store that rank 0 keeps (c10d's TCPStore): each gives signs of life, all
// learn the same line about the one that is lost.
#pragma once
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "runs/world.h"

namespace sb {

// The call on a thread of its own that takes no signals, and is left alone with what the call holds where nobody waits
// for it; the future throws what the call threw.
std::shared_future<void> started(std::function<void()> call);

class RankWatch {
 public:
  // Returns once all ranks have come with the same identity; throws bad_input after place.patience.
  RankWatch(const RankPlace& place, const std::string& identity);
  ~RankWatch();

  void alive();
  // While one of these lives the rank waits for others, which is a sign of life.
  class Waiting {
   public:
    explicit Waiting(RankWatch& watch);
    ~Waiting();

   private:
    RankWatch& watch_;
  };

  // The line that ends the run, once there is one.
  std::optional<std::string> verdict() const;
  // A connection broke: who is not there any more? Returns the verdict, some seconds later.
  std::string roll_call(const std::string& what);
  void fail(const std::string& line);  // this rank ends with an error
  void close();                        // all ranks are through

  // Address of this machine on its way to rank 0.
  const std::string& own_address() const { return own_address_; }
  const c10::intrusive_ptr<c10d::TCPStore>& store() const { return store_; }

 private:
  struct Shared;  // outlives this where the thread hangs
  void meet(const std::string& identity);

  RankPlace place_;
  std::string own_address_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sb
