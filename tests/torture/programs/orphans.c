/* orphans: processes whose parents exit first, three deep, report what they computed through a pipe. */
#include "torture.h"
#include <sys/wait.h>

enum { PARENTS = 30, CHILDREN = 4 };

struct result {
    int parent, child;
    uint64_t steps;
};

static uint64_t expected(int parent, int child) { return work(parent * CHILDREN + child, 15000); }

static void orphan(int output, pid_t parent_pid, int parent, int child) {
    while (getppid() == parent_pid)
        sleep_us(200);
    struct result result = {parent, child, expected(parent, child)};
    _exit(write(output, &result, sizeof result) != sizeof result || violations);
}

int main(void) {
    int pipes[2];
    NEED(pipe(pipes) == 0);
    announce();
    for (int parent = 0; parent < PARENTS; parent++) {
        pid_t pid = fork();
        NEED(pid >= 0);
        if (pid == 0) {
            pid_t self = getpid();
            for (int child = 0; child < CHILDREN; child++) {
                pid_t grandchild = fork();
                NEED(grandchild >= 0);
                if (grandchild == 0)
                    orphan(pipes[1], self, parent, child);
            }
            _exit(parent);
        }
        int status;
        NEED(waitpid(pid, &status, 0) == pid);
        CHECK(status == parent << 8, "parent %d ended with %#x", parent, status);
    }
    close(pipes[1]);
    static int seen[PARENTS][CHILDREN];
    struct result result;
    int results = 0;
    ssize_t length;
    while ((length = read(pipes[0], &result, sizeof result)) > 0) {
        NEED(length == sizeof result && result.parent < PARENTS && result.child < CHILDREN);
        CHECK(result.steps == expected(result.parent, result.child), "an orphan computes wrong");
        CHECK(!seen[result.parent][result.child]++, "an orphan reports twice");
        results++;
    }
    CHECK(length == 0, "read: errno %d", errno);
    CHECK(results == PARENTS * CHILDREN, "%d orphans reported", results);
    return finish("every orphan finished");
}
