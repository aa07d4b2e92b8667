// The key-value store over which ranks meet and watch each other (c10d's TCPStore); rank 0 keeps it.
#pragma once
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "runs/world.h"

namespace sb {

using RankStore = c10::intrusive_ptr<c10d::TCPStore>;

// The call on a thread of its own that takes no signals, and is left alone with what the call holds where nobody waits
// for it; the future throws what the call threw.
std::shared_future<void> started(std::function<void()> call);
// The same, waited for so long; false: it is still under way.
bool done_within(double seconds, std::function<void()> call);

// Throws bad_input, after place.patience at the latest.
RankStore connected(const RankPlace& place, bool serves);
// Addresses of this machine and of a host on the way between them, once something listens there; empty: nothing does.
struct Route {
  std::string here, there;
};
Route route_to(const std::string& host, int port);
bool stays_on_machine(const std::string& address);  // a loopback, which other machines cannot reach
// Throw bad_input where MASTER_ADDR is no address of this machine, which has to be that of rank 0; where it is none at
// all.
void check_address_is_here(const RankPlace& place);
void check_address_is_known(const RankPlace& place);

void put(c10d::TCPStore& store, const std::string& key, const std::string& text);
// Where there is no such key yet; who comes first is not overwritten.
void put_first(c10d::TCPStore& store, const std::string& key, const std::string& text);
std::string got(c10d::TCPStore& store, const std::string& key);

std::string numbered(const char* what, int rank);            // "what/rank"
std::string names(const std::vector<int>& ranks, int size);  // "ranks 1, 2 of 4"

}  // namespace sb
