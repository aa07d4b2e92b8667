// One process a run, on any file system that links or creates a file exclusively and renames one in one step, by any
// number of machines whose clocks differ.
//
// A lock is a chain of files: PATH, then PATH.next-TOKEN for the token of the one before. Whoever makes the last of
// them holds it, unless that one was given back. A holder is dead where its process is gone from this machine, or where
// its record has not changed for kMissedBeats beats while this process, by its own clock, looked on; times of files and
// of other machines are never compared. Only one can make the file that follows a token, so only one takes over. It
// then renames its file to PATH, which is never removed and never has the same token twice; one that followed a token
// that is no longer in the chain finds so and takes its file away.
//
// A holder that sleeps for longer than that and wakes finds its token followed or gone (check()). Files are published
// through FencedFiles: named beside their target, then checked, then renamed. A taker first removes what has such a
// name, so that a holder which falls asleep between its check and its rename finds nothing to rename.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file_system.h"
#include "runs/lock_record.h"

namespace sb {

// What one who waits for a lock has seen of it.
class LockWatch {
 public:
  bool beating() const { return beating_; }          // the holder was seen to; one that was not may still be dead
  bool alive() const { return beating_ || there_; }  // or its process is on this machine, if only asleep
  double proof() const { return proof_; }            // seconds without a beat that prove its holder dead

 private:
  friend class RunLock;
  // Looks once more: true where the content has stayed for `seconds`. Time in which nobody looked counts as one beat.
  bool still(const std::string& content, const std::string& token, double every, double seconds);

  std::string content_, token_;
  double still_ = 0, proof_ = 0;  // seconds
  std::chrono::steady_clock::time_point looked_;
  bool beating_ = false, there_ = false;
};

class RunLock {
 public:
  // Throws Error(stopped) that says who holds it, cannot_write if the file cannot be made. `watch`: what earlier
  // attempts saw; without, only what is surely dead is taken over.
  explicit RunLock(const std::string& path, LockWatch* watch = nullptr);
  ~RunLock();  // gives it back
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;

  // Throws Error(taken_over) that says by whom.
  void check() const;
  bool lost() const;  // as the last beat found it; costs nothing

 private:
  class Holding;
  std::unique_ptr<Holding> holding_;
};

// Whether somebody holds the lock of this path, asked without touching it; nothing for a holder of another machine.
std::optional<bool> lock_is_held(const std::string& path);
// Who holds it, or held it last; nothing where there is no lock, or none that can be read.
std::optional<LockRecord> lock_record(const std::string& path);

// Waits for a lock: until it can be had, its holder is seen to live and `seconds` are over, or `stop` says so, which is
// asked many times a second. Throws as RunLock does.
RunLock wait_for_lock(const std::string& path, double seconds, const std::function<bool()>& stop);

// Nothing is renamed or removed that the lock is not for any more: Error(taken_over) instead.
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
