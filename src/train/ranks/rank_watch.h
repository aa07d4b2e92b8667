// Ranks monitor each other through the store that rank 0 hosts. Each sends heartbeats. If a rank is lost or fails, all
// ranks learn the same verdict.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "train/ranks/process_group.h"
#include "train/ranks/rank_meeting.h"

namespace sb {

class RankWatch {
 public:
  // Returns once all ranks have met (see meet()).
  RankWatch(const RankPlace& place, const std::string& identity);
  ~RankWatch();

  void alive();  // reports progress; without progress and without Waiting, no heartbeat is sent
  // RAII guard: this rank waits for others; heartbeats are sent meanwhile.
  class Waiting {
   public:
    explicit Waiting(RankWatch& watch);
    ~Waiting();

   private:
    RankWatch& watch_;
  };

  // The verdict that ends the run; nullopt while there is none.
  std::optional<GroupEnded> verdict() const;
  // Call when a connection broke, with its error text. Finds the lost ranks and returns the verdict, after some
  // seconds.
  GroupEnded roll_call(const std::string& what);
  // See ProcessGroup.
  GroupEnded fail(Exit code, const std::string& line);
  void listen(std::function<bool()> stop);
  bool stop_asked() const;
  bool ended() const;  // whether there is a verdict
  void close();        // stops monitoring; call when all ranks are done

  // See RankMeeting::own_address.
  const std::string& own_address() const { return meeting_.own_address; }
  const RankStore& store() const { return meeting_.store; }

 private:
  struct Shared;  // shared with the monitoring thread; outlives this object if that thread hangs

  RankPlace place_;
  RankMeeting meeting_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sb
