/* Preloaded into a process, this writes to $WATCH_LOG a line for each name that is looked up, each address that is
   talked to and each file that is changed. What a library does by system calls of its own is not seen. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static void note(const char *kind, const char *what) {
    const char *log = getenv("WATCH_LOG");
    char line[2 * PATH_MAX + 64];
    int saved = errno, size = snprintf(line, sizeof line, "%s\t%s\n", kind, what);
    int fd = log ? syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0 && write(fd, line, size) != size) abort();
    if (fd >= 0) close(fd);
    errno = saved;
}

static void change(int folder, const char *path) {
    char link[64], from[PATH_MAX] = "", whole[2 * PATH_MAX];
    if (path[0] == '/') return note("file", path);
    if (folder == AT_FDCWD) strcpy(link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    if (readlink(link, from, sizeof from - 1) < 0) strcpy(from, "?");
    snprintf(whole, sizeof whole, "%s/%s", from, path);
    note("file", whole);
}

static void opened(int folder, const char *path, int flags) {
    if ((flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC | O_APPEND)) change(folder, path);
    else if (!strcmp(path, "/etc/resolv.conf") || !strcmp(path, "/etc/hosts")) note("lookup", path);
}

static void talk(const struct sockaddr *to) {
    char text[INET6_ADDRSTRLEN] = "?";
    if (!to) return;
    if (to->sa_family == AF_UNIX) note("socket", ((const struct sockaddr_un *)to)->sun_path);
    else if (to->sa_family == AF_INET)
        note("address", inet_ntop(AF_INET, &((const struct sockaddr_in *)to)->sin_addr, text, sizeof text));
    else if (to->sa_family == AF_INET6)
        note("address", inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)to)->sin6_addr, text, sizeof text));
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define WRAP(type, name, params, args, noted) type name params { noted; return REAL(name) args; }
#define OPEN(name) int name(const char *path, int flags, ...) { \
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    opened(AT_FDCWD, path, flags); return REAL(name)(path, flags, mode); }
#define OPENAT(name) int name(int folder, const char *path, int flags, ...) { \
    va_list rest; va_start(rest, flags); mode_t mode = va_arg(rest, mode_t); va_end(rest); \
    opened(folder, path, flags); return REAL(name)(folder, path, flags, mode); }
#define FOPEN(name) WRAP(FILE *, name, (const char *path, const char *mode), (path, mode), \
    opened(AT_FDCWD, path, strpbrk(mode, "wa+") ? O_RDWR : O_RDONLY))
#define ONE(name) WRAP(int, name, (const char *path), (path), change(AT_FDCWD, path))
#define TWO(name) WRAP(int, name, (const char *a, const char *b), (a, b), (change(AT_FDCWD, a), change(AT_FDCWD, b)))
#define MODE(name) WRAP(int, name, (const char *path, mode_t mode), (path, mode), change(AT_FDCWD, path))

OPEN(open) OPEN(open64) OPENAT(openat) OPENAT(openat64) FOPEN(fopen) FOPEN(fopen64)
MODE(creat) MODE(creat64) MODE(mkdir) MODE(chmod) ONE(unlink) ONE(rmdir) TWO(rename) TWO(link)
WRAP(int, fchmodat, (int dir, const char *path, mode_t mode, int flags), (dir, path, mode, flags), change(dir, path))
WRAP(int, truncate, (const char *path, off_t size), (path, size), change(AT_FDCWD, path))
WRAP(int, truncate64, (const char *path, off64_t size), (path, size), change(AT_FDCWD, path))
WRAP(int, symlink, (const char *to, const char *path), (to, path), change(AT_FDCWD, path))
WRAP(int, symlinkat, (const char *to, int dir, const char *path), (to, dir, path), change(dir, path))
WRAP(int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), change(dir, path))
WRAP(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags), change(dir, path))
WRAP(int, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b), (change(d, a), change(e, b)))
WRAP(int, renameat2, (int d, const char *a, int e, const char *b, unsigned f), (d, a, e, b, f), (change(d, a), change(e, b)))
WRAP(int, linkat, (int d, const char *a, int e, const char *b, int f), (d, a, e, b, f), (change(d, a), change(e, b)))

WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), talk(to))
WRAP(int, bind, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size), talk(to))
WRAP(ssize_t, sendto, (int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length),
     (fd, data, size, flags, to, length), talk(to))
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags), talk(message->msg_name))
WRAP(int, getaddrinfo, (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found),
     (node, service, hints, found), note("lookup", node ? node : "?"))
WRAP(struct hostent *, gethostbyname, (const char *name), (name), note("lookup", name))
WRAP(struct hostent *, gethostbyname2, (const char *name, int family), (name, family), note("lookup", name))
