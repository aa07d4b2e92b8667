// Two ranks of one process, a thread each: what one ends with the other learns.
#include "train/ranks/rank_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace sb {
namespace {

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  socklen_t size = sizeof any;
  EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&any), size), 0);
  EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&any), &size), 0);
  ::close(socket);
  return ntohs(any.sin_port);
}

template <class Condition>
bool eventually(const Condition& holds) {
  for (int tries = 0; tries < 3000; ++tries) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// An address of this machine that others reach; empty: it has none.
std::string outer_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return "";
  std::string out;
  for (const ifaddrs* each = all; each != nullptr && out.empty(); each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr, text, sizeof text);
    if (!std::string(text).starts_with("127.")) out = text;
  }
  ::freeifaddrs(all);
  return out;
}

class RankPair : public ::testing::Test {
 protected:
  explicit RankPair(const std::string& seen_by_second = "127.0.0.1") {
    RankPlace place;
    place.size = 2;
    place.grouped = true;
    place.address = "127.0.0.1";
    place.port = free_port();
    place.timeout_seconds = 60;
    place.origin = "WORLD_SIZE";
    std::thread other([&, place]() mutable {
      place.rank = 1;
      place.address = seen_by_second;
      second_ = std::make_unique<RankWatch>(place, "the same");
    });
    first_ = std::make_unique<RankWatch>(place, "the same");
    other.join();
  }
  // What a rank that waits for the other comes to know.
  static GroupEnded heard(RankWatch& rank) {
    EXPECT_TRUE(eventually([&] { return rank.verdict().has_value(); }));
    return *rank.verdict();
  }
  std::unique_ptr<RankWatch> first_, second_;
};

TEST_F(RankPair, ErrorOfRank0EndsOtherRankWithItsCode) {
  for (RankWatch* rank : {first_.get(), second_.get()}) EXPECT_FALSE(rank->verdict());
  const GroupEnded own = first_->fail(Exit::cannot_write, "[run] the disk is full");
  EXPECT_EQ(own.code(), Exit::cannot_write);
  EXPECT_STREQ(own.what(), "[run] the disk is full");
  EXPECT_FALSE(own.already_reported());
  const GroupEnded other = heard(*second_);
  EXPECT_EQ(other.code(), Exit::cannot_write);
  EXPECT_TRUE(other.already_reported());
}

TEST_F(RankPair, Rank0ReportsErrorOfOtherRank) {
  const RankWatch::Waiting waits(*first_);
  const GroupEnded own = second_->fail(Exit::bad_input, "[memory] not enough");
  EXPECT_EQ(own.code(), Exit::bad_input);
  EXPECT_TRUE(own.already_reported());
  const GroupEnded other = heard(*first_);
  EXPECT_EQ(other.code(), Exit::bad_input);
  EXPECT_STREQ(other.what(), "[train] rank 1 of 2 ended: [memory] not enough");
  EXPECT_FALSE(other.already_reported());
}

TEST_F(RankPair, FirstErrorWins) {
  first_->fail(Exit::taken_over, "[run] taken over");
  const GroupEnded late = second_->fail(Exit::bad_input, "[memory] not enough");
  EXPECT_EQ(late.code(), Exit::taken_over);
  EXPECT_TRUE(late.already_reported());
  EXPECT_EQ(heard(*first_).code(), Exit::taken_over);
}

TEST_F(RankPair, Rank0SeesStopRequestOfOtherRank) {
  std::atomic<bool> asked = false;
  second_->listen([&] { return asked.load(); });
  EXPECT_FALSE(first_->stop_asked());
  asked = true;
  EXPECT_TRUE(eventually([&] { return first_->stop_asked(); }));
  EXPECT_FALSE(first_->verdict()) << "which is no error";
  second_->close();
}

TEST_F(RankPair, RanksOnOneMachineUseLoopback) {
  EXPECT_EQ(first_->own_address(), "127.0.0.1");
  EXPECT_EQ(second_->own_address(), "127.0.0.1");
}

// As where a machine's own name is a loopback to itself, and to nobody else.
class RanksOfTwoNames : public RankPair {
 protected:
  RanksOfTwoNames() : RankPair(outer_address().empty() ? "127.0.0.1" : outer_address()) {}
};

TEST_F(RanksOfTwoNames, RanksUseReachableAddress) {
  if (outer_address().empty()) GTEST_SKIP() << "this machine has no address but its own";
  EXPECT_EQ(first_->own_address(), outer_address());
  EXPECT_EQ(second_->own_address(), outer_address());
}

}  // namespace
}  // namespace sb
