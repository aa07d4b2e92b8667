// The key-value store through which ranks meet and monitor each other (c10d's TCPStore), hosted by rank 0.
#pragma once
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "config/rank_place.h"

namespace sb {

using RankStore = c10::intrusive_ptr<c10d::TCPStore>;

// Runs the call on a new detached thread that blocks all signals. The thread owns whatever the call captures. The
// future rethrows the call's exception.
std::shared_future<void> started(std::function<void()> call);
// Runs the call like started() and waits for it. Returns false if the call is still running after this time.
bool done_within(double seconds, std::function<void()> call);

// Connects to the store; `serves`: hosts it. Throws bad_input after place.timeout_seconds seconds at the latest.
RankStore connected(const RankPlace& place, bool serves);
// Connects to the host and port, and returns the numeric addresses of both ends; both are empty if nothing listens.
struct Route {
  std::string here, there;
};
Route route_to(const std::string& host, int port);
bool stays_on_machine(const std::string& address);  // whether this is a loopback address
// Throws bad_input if MASTER_ADDR is not an address of this machine; for rank 0.
void check_address_is_here(const RankPlace& place);
// Throws bad_input if MASTER_ADDR cannot be resolved.
void check_address_is_known(const RankPlace& place);

void put(c10d::TCPStore& store, const std::string& key, const std::string& text);
// Sets the key unless it already exists.
void put_first(c10d::TCPStore& store, const std::string& key, const std::string& text);
std::string got(c10d::TCPStore& store, const std::string& key);  // waits for the key

std::string numbered(const char* what, int rank);            // "what/rank"
std::string names(const std::vector<int>& ranks, int size);  // "ranks 1, 2 of 4"

}  // namespace sb
