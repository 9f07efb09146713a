/* An entry is one file, named by its key: a header, then the text. It is written to a temporary
 * file in the same directory and renamed, so readers see a whole entry or none. A crash or a full
 * disk can still leave a truncated or stale file; the digest in the header detects it.
 */
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* In native byte order. On a machine of the other byte order the length check fails. */
typedef struct header {
    char magic[8];
    uint64_t bytes;
    uint8_t digest[SHA256_BYTES]; /* of the key and the text, so a renamed file is rejected */
} header;

static const char magic[8] = "SMKPTX1";

enum { MAX_BYTES = 256 << 20, NAME_BYTES = 2 * SHA256_BYTES + 64 };

static void digest_of(const uint8_t key[SHA256_BYTES], const char *text, size_t bytes,
                      uint8_t digest[SHA256_BYTES]) {
    sha256 s;
    sha256_start(&s);
    sha256_add(&s, key, SHA256_BYTES);
    sha256_add(&s, text, bytes);
    sha256_finish(&s, digest);
}

static void entry_name(const uint8_t key[SHA256_BYTES], char name[NAME_BYTES]) {
    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(name + 2 * i, 3, "%02x", key[i]);
    strcat(name, ".ptx");
}

/* Opens the directory; -1 unless it belongs to this user and no other user can write to it. */
static int open_directory(const char *path) {
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stat info;
    if (directory < 0) return -1;
    if (fstat(directory, &info) == 0 && info.st_uid == geteuid() &&
        !(info.st_mode & (S_IWGRP | S_IWOTH)))
        return directory;
    close(directory);
    return -1;
}

/* Creates the missing directories of the path. Failures surface when it is opened. */
static void make_directory(const char *path) {
    char *part = strdup(path);
    if (!part) return;
    char *slash = strchr(part + (*part == '/'), '/');
    for (; slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(part, 0700);
        *slash = '/';
    }
    mkdir(part, 0700);
    free(part);
}

static bool read_all(int file, void *data, size_t bytes) {
    char *p = data;
    while (bytes) {
        ssize_t n = read(file, p, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool write_all(int file, const void *data, size_t bytes) {
    const char *p = data;
    while (bytes) {
        ssize_t n = write(file, p, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        p += n;
        bytes -= (size_t)n;
    }
    return true;
}

static char *read_entry(int file, const uint8_t key[SHA256_BYTES], size_t *bytes) {
    header h;
    struct stat info;
    if (fstat(file, &info) || !S_ISREG(info.st_mode) || info.st_uid != geteuid()) return NULL;
    if (!read_all(file, &h, sizeof h) || memcmp(h.magic, magic, sizeof magic)) return NULL;
    if (h.bytes > MAX_BYTES || (uint64_t)info.st_size != sizeof h + h.bytes) return NULL;

    char *text = malloc(h.bytes + 1);
    uint8_t digest[SHA256_BYTES];
    if (!text) return NULL;
    if (!read_all(file, text, h.bytes)) goto fail;
    digest_of(key, text, h.bytes, digest);
    if (memcmp(digest, h.digest, sizeof digest)) goto fail;
    text[h.bytes] = '\0';
    *bytes = h.bytes;
    return text;

fail:
    free(text);
    return NULL;
}

char *cache_load(const char *path, const uint8_t key[SHA256_BYTES], size_t *bytes) {
    char name[NAME_BYTES];
    entry_name(key, name);
    int directory = open_directory(path);
    if (directory < 0) return NULL;
    /* O_NONBLOCK: do not block on a FIFO of that name. */
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char *text = NULL;
    if (file >= 0) {
        text = read_entry(file, key, bytes);
        close(file);
    }
    close(directory);
    return text;
}

void cache_store(const char *path, const uint8_t key[SHA256_BYTES], const char *text,
                 size_t bytes) {
    static atomic_uint stores; /* with the process id, makes the temporary name unique */
    header h = {.bytes = bytes};
    char name[NAME_BYTES], temporary[NAME_BYTES];
    memcpy(h.magic, magic, sizeof magic);
    digest_of(key, text, bytes, h.digest);
    entry_name(key, name);
    snprintf(temporary, sizeof temporary, ".%ld-%u.part", (long)getpid(),
             atomic_fetch_add(&stores, 1));

    make_directory(path);
    int directory = open_directory(path);
    if (directory < 0) return;
    int file =
        openat(directory, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) {
        bool written = write_all(file, &h, sizeof h) && write_all(file, text, bytes);
        written = close(file) == 0 && written;
        if (!written || renameat(directory, temporary, directory, name))
            unlinkat(directory, temporary, 0);
    }
    close(directory);
}
