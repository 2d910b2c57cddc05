/* See hbbp.h. The folders, the pipe and the messages are those of the Rust crate hbbp-control (src/place.rs, src/message.rs). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "hbbp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { START = 1, STOP = 2, MARK = 3 };
enum { MESSAGE = 128, MOST_NAME = 100, MOST_PATH = 512, MOST_ANCESTORS = 64 };

/* How long it takes until a new recording is found, and until it is seen that one has ended, ns. */
static const uint64_t look_for = 1000000000, look_after = 100000000;

struct message {
    char magic[4];
    uint8_t order, scope, name_length, zero;
    uint64_t time;
    uint32_t pid, tid, lost;
    char name[MOST_NAME];
};
_Static_assert(sizeof(struct message) == MESSAGE, "as the recorder reads it");

/* A file whose descriptor the program may have closed and used for something else: a daemon closes all. */
struct guarded {
    _Atomic int fd; /* plus 1; 0 if there is none */
    _Atomic uint64_t device, inode;
};

/* The recording's pipe and state. They stay open when it has ended. */
static struct guarded messages, state;
static _Atomic int has_recording;
/* The folder that the environment names, as it was when the program began: others may change the environment later. */
static char named[MOST_PATH / 2];
/* The folder that this process was found in: whose parents have ended finds it no more. Of the one thread that looks. */
static char known[MOST_PATH / 2];
static _Atomic uint64_t next_look;
/* Messages that did not fit. */
static _Atomic uint32_t lost;
/* What this process said last of itself: 0 nothing, else twice the turns of the whole recording that had been seen by then,
 * plus 2, plus 1 for on. */
static _Atomic uint64_t own;
/* The process that looks for a recording; a child of fork is not taken for its parent. */
static _Atomic int looking;

__attribute__((constructor)) static void read_environment(void)
{
    const char *folder = secure_getenv("HBBP_CONTROL");
    if (folder && strlen(folder) < sizeof named)
        strcpy(named, folder);
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The descriptor, if it is still one of the file, else -1. */
static int fd_of(struct guarded *guarded)
{
    struct stat file;
    int fd = atomic_load(&guarded->fd) - 1;
    int is_same = fd >= 0 && fstat(fd, &file) == 0 && file.st_dev == atomic_load(&guarded->device) &&
                  file.st_ino == atomic_load(&guarded->inode);
    return is_same ? fd : -1;
}

/* Puts another file in its place, under the same number: a thread may be about to write to it. */
static void put(struct guarded *guarded, int fd, const struct stat *file)
{
    int old = fd_of(guarded);
    if (old >= 0 && dup3(fd, old, O_CLOEXEC) == old) {
        close(fd);
        fd = old;
    }
    atomic_store(&guarded->device, file->st_dev);
    atomic_store(&guarded->inode, file->st_ino);
    atomic_store(&guarded->fd, fd + 1);
}

/* Whether the recorder holds the lock of its state. */
static int is_locked(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        flock(fd, LOCK_UN);
        return 0;
    }
    return errno == EWOULDBLOCK;
}

static int is_alive(void)
{
    struct stat file;
    int fd = fd_of(&state);
    return fd >= 0 && fd_of(&messages) >= 0 && fstat(fd, &file) == 0 && file.st_nlink > 0 && is_locked(fd);
}

/* Opens the files of the recording in that folder; 0 if there is none at work. */
static int open_recording(const char *folder)
{
    char path[MOST_PATH];
    struct stat file, pipe;
    snprintf(path, sizeof path, "%s/state", folder);
    /* It may lie in a folder that others chose. */
    int state_fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (state_fd < 0)
        return 0;
    snprintf(path, sizeof path, "%s/messages", folder);
    /* Open for reading, too: a write to a pipe that nobody reads any more would end the program (SIGPIPE). */
    int pipe_fd = is_locked(state_fd) ? open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (pipe_fd >= 0 && fstat(state_fd, &file) == 0 && fstat(pipe_fd, &pipe) == 0 && S_ISFIFO(pipe.st_mode)) {
        /* The program may have closed the descriptors of the recording that it is in. */
        if (atomic_load(&state.device) != file.st_dev || atomic_load(&state.inode) != file.st_ino) {
            atomic_store(&own, 0);
            atomic_store(&lost, 0);
        }
        put(&state, state_fd, &file);
        put(&messages, pipe_fd, &pipe);
        atomic_store(&has_recording, 1);
        if (folder != known)
            strcpy(known, folder);
        return 1;
    }
    if (pipe_fd >= 0)
        close(pipe_fd);
    close(state_fd);
    return 0;
}

/* The parent of a process: the fourth field of /proc/PID/stat, whose second may hold anything in brackets. */
static long parent(long pid)
{
    char path[64], text[512], status;
    long parent = 0;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    text[length > 0 ? length : 0] = 0;
    const char *after_name = strrchr(text, ')');
    return after_name && sscanf(after_name + 1, " %c %ld", &status, &parent) == 2 ? parent : 0;
}

static void find_recording(void)
{
    char base[MOST_PATH / 4], folder[MOST_PATH / 2];
    struct stat file;
    uid_t user = geteuid();
    if (*named) {
        open_recording(named);
        return;
    }
    if (*known && open_recording(known))
        return;
    snprintf(base, sizeof base, "/run/user/%u", (unsigned)user);
    if (stat(base, &file) == 0 && S_ISDIR(file.st_mode) && file.st_uid == user)
        snprintf(base, sizeof base, "/run/user/%u/hbbp", (unsigned)user);
    else
        snprintf(base, sizeof base, "/tmp/hbbp-%u", (unsigned)user);
    if (lstat(base, &file) != 0 || !S_ISDIR(file.st_mode) || file.st_uid != user || (file.st_mode & 022))
        return;
    long pid = getpid();
    for (int steps = 0; pid > 0 && steps < MOST_ANCESTORS; steps++, pid = parent(pid)) {
        snprintf(folder, sizeof folder, "%s/of-%ld", base, pid);
        if (open_recording(folder))
            return;
    }
    snprintf(folder, sizeof folder, "%s/of-all", base);
    open_recording(folder);
}

/* Looks for a recording, and whether the one that is known is still there. */
static void look(uint64_t time)
{
    int self = (int)getpid(), nobody = atomic_load(&looking);
    if (nobody == self || !atomic_compare_exchange_strong(&looking, &nobody, self))
        return;
    if (!atomic_load(&has_recording) || !is_alive()) {
        atomic_store(&has_recording, 0);
        find_recording();
    }
    atomic_store(&next_look, time + (atomic_load(&has_recording) ? look_after : look_for));
    atomic_store(&looking, 0);
}

/* The recording's turns and whether it is on; 0 if it does not say. */
static int read_state(int *on, uint64_t *turns)
{
    int fd = fd_of(&state);
    char line[42] = {0}, word[4];
    unsigned long long count;
    if (fd < 0 || pread(fd, line, sizeof line - 1, 0) <= 0 || sscanf(line, "hbbp-control/1 %3s %llu", word, &count) != 2)
        return 0;
    *on = strcmp(word, "on") == 0;
    *turns = count;
    return 1;
}

/* Whether there is a recording. */
static int recorded(void)
{
    uint64_t time = now();
    if (time >= atomic_load(&next_look))
        look(time);
    return atomic_load(&has_recording);
}

static void say(uint8_t order, const char *name)
{
    int fd = recorded() ? fd_of(&messages) : -1;
    if (fd < 0) {
        if (atomic_load(&has_recording))
            atomic_fetch_add(&lost, 1);
        return;
    }
    struct message message = {.magic = {'H', 'B', 'M', '1'}, .order = order, .time = now()};
    message.name_length = (uint8_t)strnlen(name, MOST_NAME);
    memcpy(message.name, name, message.name_length);
    message.pid = (uint32_t)getpid();
    message.tid = (uint32_t)syscall(SYS_gettid);
    message.lost = atomic_exchange(&lost, 0);
    ssize_t written;
    do
        written = write(fd, &message, sizeof message);
    while (written < 0 && errno == EINTR);
    if (written != sizeof message)
        atomic_fetch_add(&lost, message.lost + 1);
}

static void turn(int on)
{
    int error = errno, was_on;
    uint64_t turns = 0;
    if (recorded() && read_state(&was_on, &turns))
        atomic_store(&own, (turns + 1) << 1 | (uint64_t)on);
    say(on ? START : STOP, "");
    errno = error;
}

void hbbp_start(void)
{
    turn(1);
}

void hbbp_stop(void)
{
    turn(0);
}

void hbbp_mark(const char *name)
{
    int error = errno;
    say(MARK, name ? name : "");
    errno = error;
}

int hbbp_is_recording(void)
{
    int error = errno, on = 0;
    uint64_t turns, said;
    if (recorded() && read_state(&on, &turns)) {
        said = atomic_load(&own);
        on = said >> 1 == turns + 1 ? (int)(said & 1) : on;
    }
    errno = error;
    return on;
}
