// Lock that gives a run to one process at a time. It works between any number of machines, without synchronised clocks,
// on any file system that can link or create a file exclusively and rename it atomically.
//
// A lock is a chain of files: PATH, then PATH.next-TOKEN with the token of the previous file. The owner of the last
// file holds the lock, unless that file is marked as released. An owner is dead if its process no longer exists on this
// machine, or if its record has not changed for kMissedBeats heartbeats while this process watched by its own clock.
// Times of files and of other machines are never compared. Only one process can create the file that follows a token,
// so only one process takes over. It then renames its file to PATH. PATH is never removed and never has the same token
// twice. A process that followed a token which is no longer in the chain detects this and removes its file.
//
// An owner that was suspended beyond this time detects in check() that its token was followed or is gone. Files are
// published through FencedFiles: written to a temporary name next to the target, checked, then renamed. A new owner
// first deletes all files with temporary names, so that an owner suspended between check and rename has nothing left to
// rename.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "store/lock_record.h"

namespace sb {

// Observations of a lock by a waiting process.
class LockWatch {
 public:
  bool beating() const { return beating_; }          // a heartbeat of the owner was seen
  bool alive() const { return beating_ || there_; }  // or its process exists on this machine
  double proof() const { return proof_; }            // seconds without a heartbeat that prove the owner dead

 private:
  friend class RunLock;
  // Records an observation; true if the content has not changed for `seconds`. Time between two observations counts as
  // at most one heartbeat, since this process may have been suspended.
  bool still(const std::string& content, const std::string& token, double every, double seconds);

  std::string content_, token_;
  double still_ = 0, proof_ = 0;  // seconds
  std::chrono::steady_clock::time_point looked_;
  bool beating_ = false, there_ = false;
};

class RunLock {
 public:
  // Throws Error(stopped) that names the owner, or cannot_write if the file cannot be created. `watch`: observations of
  // earlier attempts; without it, a lock is taken over only if it is released or its process no longer exists.
  explicit RunLock(const std::string& path, LockWatch* watch = nullptr);
  ~RunLock();  // releases the lock
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

  // Throws Error(taken_over) that names the new owner.
  void check() const;
  bool lost() const;  // state at the last heartbeat; costs nothing

 private:
  class Holding;
  std::unique_ptr<Holding> holding_;
};

// Whether the lock of this path is held, without modifying it; nullopt if its owner is out of reach (Holder::unknown).
std::optional<bool> lock_is_held(const std::string& path);
// The current or last owner; nullopt if there is no readable lock.
std::optional<LockRecord> lock_record(const std::string& path);

// Waits until the lock can be taken. Gives up when `stop` returns true (polled many times a second), or when `seconds`
// have passed and the owner is alive. Throws like RunLock.
RunLock wait_for_lock(const std::string& path, double seconds, const std::function<bool()>& stop);

// File system that checks the lock before every rename and removal, and throws Error(taken_over) if the lock was lost.
class FencedFiles : public FileSystem {
 public:
  FencedFiles(FileSystem& files, const RunLock& lock) : files_(files), lock_(lock) {}

  int open_unnamed(const std::string& folder) override { return files_.open_unnamed(folder); }
  int create(const std::string& path) override { return files_.create(path); }
  int open_existing(const std::string& path) override { return files_.open_existing(path); }
  ssize_t write(int fd, const void* data, size_t size) override { return files_.write(fd, data, size); }
  int sync(int fd) override { return files_.sync(fd); }
  int close(int fd) override { return files_.close(fd); }
  int link(int fd, const std::string& path) override { return files_.link(fd, path); }
  int rename(const std::string& from, const std::string& to) override;
  int remove(const std::string& path) override;
  int sync_folder(const std::string& folder) override { return files_.sync_folder(folder); }

 private:
  FileSystem& files_;
  const RunLock& lock_;
};

}  // namespace sb
