#include "native/batch_stream.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/parallel.h"
#include "native/memory.h"

namespace sb::python {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(100);  // between two looks at Ctrl-C

uint64_t divided_up(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

BatchStream::BatchStream(std::shared_ptr<const PyTask> task, const StreamRequest& request)
    : task_(std::move(task)),
      request_(request),
      pool_(std::make_shared<BatchPool>(static_cast<size_t>(request.ahead) + 2)),
      shared_(std::make_shared<Shared>()) {
  const uint64_t all = divided_up(request_.count, static_cast<uint64_t>(request_.batch));
  total_ = all > request_.shard ? divided_up(all - request_.shard, request_.shards) : 0;
  const uint64_t together = std::min<uint64_t>(total_, static_cast<uint64_t>(request_.ahead) + 1);
  expect_memory("batches", std::to_string(together) + (together == 1 ? " batch" : " batches at a time"),
                static_cast<double>(together) *
                    batch_bytes(task_->task(), request_.split,
                                std::min<uint64_t>(static_cast<uint64_t>(request_.batch), request_.count),
                                request_.dense, request_.pad_to),
                "ask for a smaller batch_size or ahead, or for symbols alone with dense=False");
  const int threads = thread_count(request_.threads, static_cast<size_t>(request_.ahead));
  shared_->threads.reserve(static_cast<size_t>(threads));
  try {
    for (int i = 0; i < threads; ++i) shared_->threads.emplace_back([this] { work(*shared_); });
  } catch (const std::system_error&) {
    // The system gives no more threads: next() makes what none of them makes.
  }
}

BatchStream::~BatchStream() {
  close();
}

void BatchStream::close() {
  if (!shared_) return;
  if (forked()) {
    new std::shared_ptr<Shared>(std::move(shared_));  // left behind
    shared_.reset();
    return;
  }
  std::vector<std::thread> threads;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
    threads.swap(shared_->threads);
  }
  shared_->wanted.notify_all();
  shared_->made.notify_all();
  for (auto& thread : threads) thread.join();
}

BatchStream::Made BatchStream::make(uint64_t number) const {
  const uint64_t batch = static_cast<uint64_t>(request_.batch);
  const uint64_t first = (request_.shard + number * request_.shards) * batch;
  Made out;
  try {
    std::vector<uint64_t> samples(std::min(batch, request_.count - first));
    for (size_t i = 0; i < samples.size(); ++i) samples[i] = request_.order.at(request_.start + first + i);
    out.batch = pool_->take();
    out.batch->fill(task_->task(), request_.split, samples, request_.dense, request_.pad_to, [this] {
      if (shared_->stop) throw check_failed("batches", "closed");
    });
  } catch (...) {
    out.batch = nullptr;
    out.failure = std::current_exception();
  }
  return out;
}

void BatchStream::work(Shared& s) {
  const auto ahead = static_cast<uint64_t>(request_.ahead);
  while (true) {
    uint64_t number = 0;
    {
      std::unique_lock lock(s.mutex);
      s.wanted.wait(lock, [&] { return s.stop || s.taken >= total_ || s.taken < s.delivered + ahead; });
      if (s.stop || s.taken >= total_) return;
      number = s.taken++;
    }
    Made made = make(number);
    {
      const std::lock_guard lock(s.mutex);
      s.ready.emplace(number, std::move(made));
    }
    s.made.notify_all();
  }
}

std::shared_ptr<FrameBatch> BatchStream::next() {
  if (forked()) {
    throw check_failed("batches", "begun in process " + std::to_string(process_) +
                                      " and used after a fork, expected a new iterator in this process");
  }
  Shared& s = *shared_;
  Made out;
  bool there = false;
  while (!there) {
    {
      const Unlocked here;
      std::unique_lock lock(s.mutex);
      if (s.stop || s.delivered >= total_) return nullptr;
      if (s.threads.empty()) {
        out = make(s.delivered);
        there = true;
      } else if (s.made.wait_for(lock, kPatience, [&] { return s.stop || s.ready.contains(s.delivered); })) {
        if (s.stop) return nullptr;
        out = std::move(s.ready.extract(s.delivered).mapped());
        there = true;
      }
      if (there) ++s.delivered;
    }
    if (!there && PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  s.wanted.notify_one();
  if (out.failure) std::rethrow_exception(out.failure);
  return out.batch;
}

}  // namespace sb::python
