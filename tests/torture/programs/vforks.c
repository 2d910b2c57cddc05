/* vforks [ROUNDS]: children that borrow the parent's memory: vfork, clone with CLONE_VFORK, clone with CLONE_VM alone and without
 * a signal at their end. The parent must wait where it has to, see what they wrote, and get the right status. */
#include "torture.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

enum { STACK = 64 * 1024 };

static volatile uint64_t written;
static volatile int progress;
static atomic_int over;

static int in_child(void *argument) {
    long number = (long)argument;
    written = work(number, 6000);
    progress = number;
    return number % 100;
}

static void check(const char *way, pid_t child, int number, int options) {
    int status;
    NEED(child > 0);
    pid_t ended = waitpid(child, &status, options);
    CHECK(ended == child, "%s: waitpid gives %d, errno %d", way, ended, errno);
    CHECK(status == number % 100 << 8, "%s: status %#x in round %d", way, status, number);
    CHECK(written == work(number, 6000), "%s: what the child wrote is lost", way);
}

static void *others(void *unused) {
    uint64_t expected = work(3, 20);
    while (!atomic_load(&over))
        CHECK(work(3, 20) == expected, "computes wrong");
    return unused;
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 60;
    char *stack = malloc(STACK);
    pthread_t thread;
    NEED(stack && pthread_create(&thread, NULL, others, NULL) == 0);
    announce();
    for (long number = 1; number <= rounds; number++) {
        pid_t child = vfork();
        if (child == 0)
            _exit(in_child((void *)number));
        CHECK(progress == number, "vfork: the parent ran before the child ended");
        check("vfork", child, number, 0);

        progress = 0;
        child = clone(in_child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)number);
        CHECK(progress == number, "CLONE_VFORK: the parent ran before the child ended");
        check("CLONE_VFORK", child, number, 0);

        child = clone(in_child, stack + STACK, CLONE_VM | SIGCHLD, (void *)number);
        check("CLONE_VM", child, number, 0);

        child = clone(in_child, stack + STACK, CLONE_VM | CLONE_FILES, (void *)number);
        check("no signal at the end", child, number, __WALL);
    }
    atomic_store(&over, 1);
    NEED(pthread_join(thread, NULL) == 0);
    return finish("every child gave back the memory it had borrowed");
}
