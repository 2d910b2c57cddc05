/* syscalls [MS]: two threads make system calls most of the time and check every result: pipes, files, mappings, other threads'
 * wake-ups. */
#include "torture.h"
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

static int64_t end;
static pid_t own;

static void *calls(void *unused) {
    int pipes[2], file = memfd_create("file", 0);
    uint64_t sent = 1, expected = work(5, 5);
    pid_t tid = gettid();
    NEED(pipe(pipes) == 0 && file >= 0);
    while (goes_on(end))
        for (int i = 0; i < 50; i++, sent++) {
            uint64_t received[2] = {0, 0};
            struct iovec parts[2] = {{&received[0], 8}, {&received[1], 8}};
            CHECK(getpid() == own && syscall(SYS_gettid) == tid, "another process");
            CHECK(write(pipes[1], (uint64_t[]){sent, ~sent}, 16) == 16, "write: errno %d", errno);
            CHECK(readv(pipes[0], parts, 2) == 16 && received[0] == sent && received[1] == ~sent, "readv: errno %d", errno);
            CHECK(pwrite(file, &sent, 8, 8 * (sent % 512)) == 8, "pwrite: errno %d", errno);
            CHECK(lseek(file, 8 * (sent % 512), SEEK_SET) == (off_t)(8 * (sent % 512)), "lseek: errno %d", errno);
            CHECK(read(file, received, 8) == 8 && received[0] == sent, "read: errno %d", errno);
            if (sent % 16 == 0) {
                uint64_t *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                CHECK(page != MAP_FAILED, "mmap: errno %d", errno);
                page[0] = page[1023] = sent;
                CHECK(mprotect(page, 4096, PROT_READ) == 0 && page[0] == page[1023], "mprotect: errno %d", errno);
                CHECK(munmap(page, 8192) == 0, "munmap: errno %d", errno);
            }
            CHECK(sched_yield() == 0 && close(-1) == -1 && errno == EBADF, "an error is lost: errno %d", errno);
            CHECK(work(5, 5) == expected, "computes wrong");
        }
    return unused;
}

int main(int argc, char **argv) {
    end = now_ns() + duration_ns(argc, argv, 600);
    own = getpid();
    announce();
    pthread_t thread;
    NEED(pthread_create(&thread, NULL, calls, NULL) == 0);
    calls(NULL);
    NEED(pthread_join(thread, NULL) == 0);
    return finish("every system call did its own");
}
