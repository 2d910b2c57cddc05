/* daemon FILE: leaves a daemon behind (two forks, a session of its own) that outlives the program, computes on for a while, and
 * writes its one line to FILE. The program itself ends soon. */
#include "torture.h"
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void computes(int ms) {
    uint64_t expected = work(6, 50);
    while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < ms * 1000000l)
        CHECK(work(6, 50) == expected, "computes wrong");
}

int main(int argc, char **argv) {
    NEED(argc == 2);
    pid_t first = getpid(), child = fork();
    NEED(child >= 0);
    if (child == 0) {
        NEED(setsid() == getpid());
        if (fork())
            _exit(3);
        int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
        NEED(file >= 0 && dup2(file, 1) == 1 && dup2(file, 2) == 2 && close(0) == 0);
        computes(200);
        while (kill(first, 0) == 0)
            work(1, 100);
        int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        computes(cpu / 1000000 + 300);
        return finish("the daemon outlived the program");
    }
    int status;
    NEED(waitpid(child, &status, 0) == child);
    CHECK(status == 3 << 8, "the daemon's parent ended with %#x", status);
    announce();
    computes(300);
    return finish("the daemon is left behind");
}
