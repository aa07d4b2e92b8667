// The program `selectivbench`: starts the engine, the program that is linked with libtorch. Loading libtorch takes a
// third of a second in which no handler of the engine exists yet. The launcher blocks stop signals before that; a
// signal that arrives meanwhile is delivered as soon as the engine has its handlers, and ends it with exit code 75.
//
// The launcher also sets how long a waiting thread of OpenMP spins, which OpenMP reads while it is loaded. By default a
// thread spins for milliseconds and takes the core from other processes: beside two busy processes a run took twice as
// long. With 30 microseconds, after which a thread sleeps, an idle machine is as fast as with the default. A user's own
// setting has precedence.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

#ifdef __x86_64__
constexpr const char* kSpins = "2000";  // a turn of the waiting loop takes 15 to 60 ns
#else
constexpr const char* kSpins = "20000";
#endif

// The engine lies beside the launcher in a build, and in libexec of an installation.
constexpr const char* kPlaces[] = {"/engine/selectivbench", "/../libexec/selectivbench/selectivbench"};

// The loader cannot map libtorch within less address space, and would end the program with 127.
constexpr rlim_t kLeastMemory = rlim_t{192} << 20;

std::string own_folder() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0 || length == static_cast<ssize_t>(sizeof(path))) return ".";
  const std::string whole(path, static_cast<size_t>(length));
  return whole.substr(0, whole.rfind('/'));
}

}  // namespace

int main(int, char** argv) {
  sigset_t stops;
  sigemptyset(&stops);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR2}) sigaddset(&stops, signal);
  ::sigprocmask(SIG_BLOCK, &stops, nullptr);
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", kSpins, 0);

  rlimit memory{};
  if (::getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur < kLeastMemory) {
    std::fputs("[memory] cannot load the libraries within the memory limit; raise it (ulimit -v)\n", stderr);
    return 2;
  }
  const std::string folder = own_folder();
  std::string engine;
  for (const char* place : kPlaces) {
    engine = folder + place;
    ::execv(engine.c_str(), argv);
    if (errno != ENOENT && errno != ENOTDIR) break;
  }
  std::fprintf(stderr, "[selectivbench] cannot start %s: %s\n", engine.c_str(), std::strerror(errno));
  return 2;
}
