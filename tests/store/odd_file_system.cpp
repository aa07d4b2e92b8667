// Interposed (LD_PRELOAD): a file system without O_TMPFILE and without flock, as some network ones are; with
// SB_NO_LINK=1 without links.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/types.h>

#include <cerrno>

namespace {

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool unnamed(int flags) {
  return (flags & O_TMPFILE) == O_TMPFILE;
}

int refused(int error) {
  errno = error;
  return -1;
}

mode_t mode_in(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 || unnamed(flags) ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

bool without_links() {
  return ::getenv("SB_NO_LINK") != nullptr;
}

}  // namespace

extern "C" {

#define SB_OPEN(NAME)                                                         \
  int NAME(const char* path, int flags, ...) {                                \
    va_list arguments;                                                        \
    va_start(arguments, flags);                                               \
    const mode_t mode = mode_in(flags, arguments);                            \
    va_end(arguments);                                                        \
    if (unnamed(flags)) return refused(EOPNOTSUPP);                           \
    return next<int (*)(const char*, int, mode_t)>(#NAME)(path, flags, mode); \
  }
SB_OPEN(open)
SB_OPEN(open64)

int flock(int, int) {
  return refused(ENOSYS);
}

int link(const char* from, const char* to) {
  return without_links() ? refused(EPERM) : next<int (*)(const char*, const char*)>("link")(from, to);
}

int linkat(int from, const char* source, int to, const char* target, int flags) {
  return without_links()
             ? refused(EPERM)
             : next<int (*)(int, const char*, int, const char*, int)>("linkat")(from, source, to, target, flags);
}

}  // extern "C"
