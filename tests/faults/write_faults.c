/* Preloaded: counts every change that a process makes to files below FAULT_ROOT, and fails one of them.
 *
 * write_faults_arm(n, 'k') kills the process at the n-th change (a write is torn: half of it is made first);
 * write_faults_arm(n, 'f') fills the disk at the n-th change: from then on nothing that needs room succeeds.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static _Atomic long *count; /* shared with the processes that are forked later */
static long fault_at = 0;
static char fault = 0;

__attribute__((constructor)) static void prepare(void) {
  count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void write_faults_arm(long at, char kind) {
  atomic_store(count, 0);
  fault_at = at;
  fault = kind;
}

long write_faults_count(void) { return atomic_load(count); }

static int below_root(const char *path) {
  const char *root = getenv("FAULT_ROOT");
  char whole[8192];
  if (!fault || !root || !path) return 0;
  if (path[0] != '/') {
    if (!getcwd(whole, 4000)) return 0;
    strcat(whole, "/");
    strncat(whole, path, 4000);
    path = whole;
  }
  return strncmp(path, root, strlen(root)) == 0;
}

static int file_below_root(int fd) {
  char link[64], path[4096];
  struct stat about;
  if (!fault || fd <= 2 || fstat(fd, &about) || !(S_ISREG(about.st_mode) || S_ISDIR(about.st_mode))) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return below_root(path);
}

static int is_below_root(int folder, const char *path) {
  return path && (path[0] == '/' || folder == AT_FDCWD) ? below_root(path) : file_below_root(folder);
}

/* What a change must do: 0 = happen, 1 = happen by half and then be the last, -1 = fail for want of room. */
static int next_change(int needs_room) {
  long n = atomic_fetch_add(count, 1) + 1;
  if (fault == 'k' && n == fault_at) return 1;
  if (fault == 'f' && n >= fault_at && needs_room) return n == fault_at ? 1 : -1;
  return 0;
}

/* For changes that happen whole or not at all. */
static int fails(int needs_room) {
  int what = next_change(needs_room);
  if (what && fault == 'k') kill(getpid(), SIGKILL);
  if (what) errno = ENOSPC;
  return what;
}

#define REAL(name) \
  static __typeof__(&name) real; \
  if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
  REAL(write);
  if (file_below_root(fd)) {
    int what = next_change(1);
    if (what == 1) {
      ssize_t half = size > 1 ? real(fd, data, size / 2) : 0;
      if (fault == 'k') kill(getpid(), SIGKILL);
      if (half > 0) return half;
    }
    if (what) return errno = ENOSPC, -1;
  }
  return real(fd, data, size);
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
  REAL(writev);
  if (file_below_root(fd) && fails(1)) return -1;
  return real(fd, parts, number);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
  REAL(pwrite);
  if (file_below_root(fd) && fails(1)) return -1;
  return real(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
  REAL(pwrite64);
  if (file_below_root(fd) && fails(1)) return -1;
  return real(fd, data, size, at);
}

#define OPEN(name) \
  int name(const char *path, int flags, ...) { \
    REAL(name); \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    if ((flags & (O_CREAT | O_TRUNC)) && below_root(path) && fails(flags & O_CREAT)) return -1; \
    return real(path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(name) \
  int name(int folder, const char *path, int flags, ...) { \
    REAL(name); \
    va_list rest; \
    va_start(rest, flags); \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest); \
    if ((flags & (O_CREAT | O_TRUNC)) && is_below_root(folder, path) && fails(flags & O_CREAT)) return -1; \
    return real(folder, path, flags, mode); \
  }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(name) \
  FILE *name(const char *path, const char *mode) { \
    REAL(name); \
    if (strpbrk(mode, "wa+") && below_root(path) && fails(1)) return NULL; \
    return real(path, mode); \
  }
FOPEN(fopen)
FOPEN(fopen64)

#define OF_PATH(name, needs_room, declared, called, path) \
  int name declared { \
    REAL(name); \
    if (below_root(path) && fails(needs_room)) return -1; \
    return real called; \
  }
OF_PATH(mkdir, 1, (const char *path, mode_t mode), (path, mode), path)
OF_PATH(rmdir, 0, (const char *path), (path), path)
OF_PATH(unlink, 0, (const char *path), (path), path)
OF_PATH(rename, 0, (const char *from, const char *to), (from, to), to)
OF_PATH(link, 1, (const char *from, const char *to), (from, to), to)
OF_PATH(symlink, 1, (const char *from, const char *to), (from, to), to)
OF_PATH(truncate, 0, (const char *path, off_t size), (path, size), path)

#define OF_FOLDER(name, needs_room, declared, called, folder, path) \
  int name declared { \
    REAL(name); \
    if (is_below_root(folder, path) && fails(needs_room)) return -1; \
    return real called; \
  }
OF_FOLDER(mkdirat, 1, (int folder, const char *path, mode_t mode), (folder, path, mode), folder, path)
OF_FOLDER(unlinkat, 0, (int folder, const char *path, int flags), (folder, path, flags), folder, path)
OF_FOLDER(renameat, 0, (int a, const char *from, int b, const char *to), (a, from, b, to), b, to)
OF_FOLDER(renameat2, 0, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags), b, to)
OF_FOLDER(linkat, 1, (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), b, to)

#define OF_FILE(name, needs_room, declared, called) \
  int name declared { \
    REAL(name); \
    if (file_below_root(fd) && fails(needs_room)) return -1; \
    return real called; \
  }
OF_FILE(fsync, 1, (int fd), (fd))
OF_FILE(fdatasync, 1, (int fd), (fd))
OF_FILE(ftruncate, 0, (int fd, off_t size), (fd, size))
