/* keeper REPORT SECONDS COMMAND [ARGUMENT...]
 *
 * Runs a command, as init would, and says in REPORT how it and everything it left behind ended:
 *
 *     command PID                     it was started
 *     ended PID exited 3              the command ended (or `killed 9`)
 *     orphan PID exited 0             a process whose parent ended first ended
 *     left PID TID STATE NAME         a thread that was still there when the time was up: SECONDS in all, or
 *                                     GRACE_SECONDS after the command's end
 *
 * The keeper is the subreaper of all it started, so that it ends by itself only when nothing is left, neither running nor
 * stopped nor a zombie. What is left is killed; so is everything at SIGTERM. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GRACE_SECONDS = 20 };

static FILE *report;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

/* Parent, state and name of a process or thread, from its stat file. */
static pid_t parent_of(const char *path, char *state, char *name) {
    char line[512] = "";
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    char *end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    fclose(file);
    int parent = 0;
    if (!end || sscanf(end + 1, " %c %d", state, &parent) != 2)
        return 0;
    *end = 0;
    strncpy(name, strchr(line, '(') + 1, 63);
    return parent;
}

static int is_descendant(pid_t pid) {
    char path[64], state, name[64];
    for (int hops = 0; pid > 1 && hops < 1000; hops++) {
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        pid = parent_of(path, &state, name);
        if (pid == getpid())
            return 1;
    }
    return 0;
}

static void list_threads(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *tasks = opendir(path);
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char stat[128], state = '?', name[64] = "";
        if (!isdigit(task->d_name[0]))
            continue;
        snprintf(stat, sizeof stat, "/proc/%d/task/%.20s/stat", pid, task->d_name);
        parent_of(stat, &state, name);
        fprintf(report, "left %d %s %c %s\n", pid, task->d_name, state, name);
    }
    if (tasks)
        closedir(tasks);
}

/* Kills all descendants, until there are none. */
static void kill_all(int list) {
    for (;;) {
        DIR *processes = opendir("/proc");
        for (struct dirent *entry; processes && (entry = readdir(processes));) {
            pid_t pid = atoi(entry->d_name);
            if (pid > 1 && is_descendant(pid)) {
                if (list)
                    list_threads(pid);
                kill(pid, SIGKILL);
            }
        }
        if (processes)
            closedir(processes);
        list = 0;
        usleep(10000);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
    }
}

int main(int argc, char **argv) {
    if (argc < 4 || !(report = fopen(argv[1], "w")))
        return 2;
    setlinebuf(report);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t awaited, before;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    sigprocmask(SIG_BLOCK, &awaited, &before);
    double limit = seconds() + atof(argv[2]);
    pid_t command = fork();
    if (command == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        /* Whoever runs the tests in the background has them ignored. */
        signal(SIGINT, SIG_DFL);
        signal(SIGQUIT, SIG_DFL);
        execvp(argv[3], argv + 3);
        perror(argv[3]);
        _exit(127);
    }
    fprintf(report, "command %d\n", command);
    for (;;) {
        int status;
        pid_t pid;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
            const char *how = WIFEXITED(status) ? "exited" : "killed";
            int code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
            fprintf(report, "%s %d %s %d\n", pid == command ? "ended" : "orphan", pid, how, code);
            if (pid == command && limit > seconds() + GRACE_SECONDS)
                limit = seconds() + GRACE_SECONDS;
        }
        if (pid < 0)
            return 0;
        struct timespec tick = {0, 100000000};
        int told_to_end = sigtimedwait(&awaited, NULL, &tick) == SIGTERM;
        if (told_to_end || seconds() > limit) {
            kill_all(!told_to_end);
            return 1;
        }
    }
}
