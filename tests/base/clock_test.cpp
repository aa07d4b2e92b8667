#include "base/clock.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>

#include "base/signal_blocker.h"

namespace sb {
namespace {

TEST(Clock, FormatsUtcTimes) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(1769860799), "2026-01-31T11:59:59Z");
  EXPECT_EQ(utc_minutes(1769860799), "2026-01-31 11:59 UTC");
  EXPECT_EQ(utc_now().size(), utc_text(0).size());
}

TEST(Clock, ParsesWhatItFormats) {
  for (const std::time_t time : {0, 1769860799}) EXPECT_EQ(parse_utc(utc_text(time)), time);
  for (const char* text : {"", "2026-01-31", "2026-01-31T11:59:59", "2026-01-31T11:59:59Z ", "2026-13-31T11:59:59Z"})
    EXPECT_FALSE(parse_utc(text)) << text;
}

TEST(SignalBlocker, BlocksSignalsInItsScopeAndRestoresMask) {
  const auto blocked = [](int signal) {
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return sigismember(&now, signal) == 1;
  };
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
  {
    const SignalBlocker here;
    EXPECT_TRUE(blocked(SIGINT));
    EXPECT_TRUE(blocked(SIGTERM));
  }
  EXPECT_FALSE(blocked(SIGINT));
  EXPECT_TRUE(blocked(SIGUSR1));
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace
}  // namespace sb
