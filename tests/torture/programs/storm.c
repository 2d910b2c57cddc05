/* storm [CHILDREN]: as many children, up to 16 at once, by fork, posix_spawn and vfork with exec; some are killed by signals.
 * Each must end as it should. Link it statically: most of them execute the program itself, as `storm child NUMBER`. */
#include "torture.h"
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

enum { AT_ONCE = 16, KINDS = 5 };
static const char *const KIND[KINDS] = {"fork", "fork, then killed", "posix_spawn", "vfork and exec", "fork, then abort"};

static int code_of(int number) { return work(number, 3 + number % 20) % 251; }

static pid_t start(int number) {
    char text[16];
    char *arguments[] = {"storm", "child", text, NULL};
    pid_t child = -1;
    snprintf(text, sizeof text, "%d", number);
    switch (number % KINDS) {
    case 0:
        if ((child = fork()) == 0)
            _exit(code_of(number));
        break;
    case 1:
        if ((child = fork()) == 0)
            for (;;)
                pause();
        kill(child, SIGKILL);
        break;
    case 2:
        if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, NULL))
            child = -1;
        break;
    case 3:
        if ((child = vfork()) == 0) {
            execv("/proc/self/exe", arguments);
            _exit(255);
        }
        break;
    case 4:
        if ((child = fork()) == 0)
            abort();
        break;
    }
    return child;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "child") == 0)
        return code_of(atoi(argv[2]));
    int children = argc > 1 ? atoi(argv[1]) : 2000, started = 0, running = 0, ended = 0;
    pid_t pids[AT_ONCE] = {0};
    int numbers[AT_ONCE];
    announce();
    while (ended < children) {
        while (running < AT_ONCE && started < children) {
            int slot = 0;
            while (pids[slot])
                slot++;
            numbers[slot] = started;
            NEED((pids[slot] = start(started)) > 0);
            started++;
            running++;
        }
        int status, slot = 0;
        pid_t pid = waitpid(-1, &status, 0);
        CHECK(pid > 0, "waitpid: errno %d", errno);
        while (slot < AT_ONCE && pids[slot] != pid)
            slot++;
        NEED(slot < AT_ONCE);
        int number = numbers[slot], kind = number % KINDS;
        int expected = kind == 1 ? SIGKILL : kind == 4 ? SIGABRT : code_of(number) << 8;
        CHECK(status == expected, "%s: child %d ended with %#x instead of %#x", KIND[kind], number, status, expected);
        pids[slot] = 0;
        running--;
        ended++;
    }
    CHECK(waitpid(-1, NULL, 0) == -1 && errno == ECHILD, "there are more children than were made");
    return finish("every child ended as it should");
}
