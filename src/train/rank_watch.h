// Ranks watch each other over the store that rank 0 keeps: each gives signs of life, all learn the same verdict about
// the one that is lost or ended with an error.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "train/rank_meeting.h"
#include "train/world.h"

namespace sb {

class RankWatch {
 public:
  // Returns once all ranks have met (rank_meeting.h).
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

  // What ends the run, once there is such a thing.
  std::optional<WorldEnded> verdict() const;
  // A connection broke: who is not there any more? Returns the verdict, some seconds later.
  WorldEnded roll_call(const std::string& what);
  // As World's.
  WorldEnded fail(Exit code, const std::string& line);
  void listen(std::function<bool()> stop);
  bool stop_asked() const;
  bool ended() const;  // there is a verdict
  void close();        // all ranks are through

  // Address of this machine on its way to rank 0.
  const std::string& own_address() const { return meeting_.own_address; }
  const RankStore& store() const { return meeting_.store; }

 private:
  struct Shared;  // outlives this where the thread hangs

  RankPlace place_;
  RankMeeting meeting_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sb
