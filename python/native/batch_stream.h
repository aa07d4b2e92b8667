// Batches in order, prepared in advance by threads that never touch Python.
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
  uint64_t start = 0;              // position of the first sample
  uint64_t count = 0;              // samples; the last batch may be smaller
  SampleOrder order;               // maps positions to samples
  uint64_t shard = 0, shards = 1;  // the stream delivers batches shard, shard + shards, …
  bool dense = true;
  int pad_to = 0;   // frames of every batch; 0: as many as its longest sample
  int threads = 0;  // 0: all cores
  int ahead = 4;    // batches prepared in advance
};

class BatchStream {
 public:
  BatchStream(std::shared_ptr<const PyTask> task, const StreamRequest& request);
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  uint64_t batches() const { return total_; }
  // The next batch, or null after the last. Call with the GIL held: waits with the GIL released, and raises
  // KeyboardInterrupt on Ctrl-C. An exception from making a batch is rethrown in its place.
  std::shared_ptr<FrameBatch> next();
  void close();

 private:
  struct Made {
    std::shared_ptr<FrameBatch> batch;
    std::exception_ptr failure;
  };
  // State shared by the threads. In a forked process it is leaked on purpose: the threads do not exist there, and the
  // mutex may be locked.
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
