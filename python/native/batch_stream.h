// Batches in order, made ahead by threads that never touch Python.
#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "native/frame_batch.h"
#include "random/order.h"

namespace sb::python {

struct StreamRequest {
  Split split = Split::train;
  int batch = 64;
  uint64_t start = 0;              // place of the first sample
  uint64_t count = 0;              // samples; the last batch may be smaller
  SampleOrder order;               // place to sample
  uint64_t shard = 0, shards = 1;  // of the batches: number shard, shard + shards, …
  bool dense = true;
  int pad_to = 0;   // frames of every batch; 0: those of its longest sample
  int threads = 0;  // 0: all cores
  int ahead = 4;    // batches made before they are asked for
};

class BatchStream {
 public:
  BatchStream(std::shared_ptr<const PyTask> task, const StreamRequest& request);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  uint64_t batches() const { return total_; }
  // The next one, null after the last. With the interpreter lock held; waits without it and raises what Ctrl-C asks
  // for. What making a batch threw is thrown in its place.
  std::shared_ptr<FrameBatch> next();
  void close();

 private:
  struct Made {
    std::shared_ptr<FrameBatch> batch;
    std::exception_ptr failure;
  };
  // What threads share; left behind, never freed, in a process that was forked off: its threads are not there, and its
  // lock may be held.
  struct Shared {
    std::mutex mutex;
    std::condition_variable wanted, made;
    std::map<uint64_t, Made> ready;
    uint64_t taken = 0, delivered = 0;
    std::atomic<bool> stop = false;  // set with the lock held; ends what is being made, too
    std::vector<std::thread> threads;
  };
  void work(Shared& shared);
  Made make(uint64_t number) const;
  bool forked() const { return ::getpid() != process_; }

  std::shared_ptr<const PyTask> task_;
  StreamRequest request_;
  uint64_t total_ = 0;
  const pid_t process_ = ::getpid();
  std::shared_ptr<BatchPool> pool_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace sb::python
