/* A disk that fails on demand, between SQLite and the kernel (LD_PRELOAD).

   Every file named in DISK_FILES has an image in DISK_IMAGES: what a power cut leaves of it. Writes reach the
   image when they are synchronised. While the file DISK_FAILS exists, synchronising fails with EIO and, as Linux
   does, forgets what it should have written: a later success does not bring it to the image. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define MOST 100000
static struct { char name[64]; off_t at; size_t n; } dirty[MOST];
static int n_dirty;

static const char *watched(int fd) {  /* the name of a watched file without its folder, or NULL */
    static char path[PATH_MAX];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    const char *folder = getenv("DISK_FILES");
    if (n < 0 || !folder) return NULL;
    path[n] = 0;
    size_t length = strlen(folder);
    if (strncmp(path, folder, length) || path[length] != '/' || strstr(path, "-shm")) return NULL;
    return path + length + 1;
}

static int image(const char *name) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", getenv("DISK_IMAGES"), name);
    return open(path, O_RDWR | O_CREAT, 0600);
}

static void note(int fd, off_t at, ssize_t n) {
    const char *name = n > 0 ? watched(fd) : NULL;
    if (!name || n_dirty == MOST) return;
    snprintf(dirty[n_dirty].name, sizeof dirty[0].name, "%s", name);
    dirty[n_dirty].at = at;
    dirty[n_dirty++].n = (size_t)n;
}

ssize_t pwrite64(int fd, const void *what, size_t n, off_t at) {
    static ssize_t (*real)(int, const void *, size_t, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
    ssize_t done = real(fd, what, n, at);
    note(fd, at, done);
    return done;
}

ssize_t pwrite(int fd, const void *what, size_t n, off_t at) { return pwrite64(fd, what, n, at); }

ssize_t write(int fd, const void *what, size_t n) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    off_t at = lseek(fd, 0, SEEK_CUR);
    ssize_t done = real(fd, what, n);
    if (at >= 0) note(fd, at, done);
    return done;
}

int ftruncate64(int fd, off_t size) {
    static int (*real)(int, off_t);
    if (!real) real = dlsym(RTLD_NEXT, "ftruncate64");
    const char *name = watched(fd);
    if (name) {
        int copy = image(name);
        real(copy, size);
        close(copy);
    }
    return real(fd, size);
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int unlink(const char *path) {
    static int (*real)(const char *);
    if (!real) real = dlsym(RTLD_NEXT, "unlink");
    const char *folder = getenv("DISK_FILES");
    size_t length = folder ? strlen(folder) : 0;
    if (folder && !strncmp(path, folder, length) && path[length] == '/') {
        char copy[PATH_MAX];
        snprintf(copy, sizeof copy, "%s%s", getenv("DISK_IMAGES"), path + length);
        real(copy);
    }
    return real(path);
}

int fdatasync(int fd) {
    const char *name = watched(fd);
    if (!name) return 0;
    char of[64];
    snprintf(of, sizeof of, "%s", name);
    int fails = !access(getenv("DISK_FAILS"), F_OK), copy = image(of), left = 0;
    static char bytes[1 << 20];
    static ssize_t (*store)(int, const void *, size_t, off_t);
    if (!store) store = dlsym(RTLD_NEXT, "pwrite64");
    for (int i = 0; i < n_dirty; i++) {
        if (strcmp(dirty[i].name, of)) {
            dirty[left++] = dirty[i];
            continue;
        }
        ssize_t n = fails ? 0 : pread(fd, bytes, dirty[i].n < sizeof bytes ? dirty[i].n : sizeof bytes, dirty[i].at);
        if (n > 0) store(copy, bytes, (size_t)n, dirty[i].at);
    }
    n_dirty = left;
    close(copy);
    if (fails) errno = EIO;
    return fails ? -1 : 0;
}

int fsync(int fd) { return fdatasync(fd); }
