/* probe PID: looks from outside at what a collector might have left on a process. For each thread: whether all four debug registers
 * can be had by perf events, whether it can be traced, and whether its debug registers are free. Prints nothing that is fine;
 * `SKIPPED: ...` for what this machine does not allow. Needs the rights to trace. */
#include "torture.h"
#include <dirent.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

static void breakpoints(pid_t tid) {
    static long somewhere[4];
    int fds[4];
    for (int i = 0; i < 4; i++) {
        struct perf_event_attr attr = {.type = PERF_TYPE_BREAKPOINT, .size = sizeof attr, .disabled = 1};
        attr.bp_type = HW_BREAKPOINT_W;
        attr.bp_addr = (uintptr_t)&somewhere[i];
        attr.bp_len = HW_BREAKPOINT_LEN_8;
        attr.exclude_kernel = 1;
        fds[i] = syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fds[i] < 0 && (errno == EACCES || errno == EPERM || errno == ENOENT || errno == ENODEV || errno == EOPNOTSUPP))
            dprintf(2, "SKIPPED: breakpoints as perf events: errno %d\n", errno);
        else
            CHECK(fds[i] >= 0, "thread %d: only %d breakpoints are free: errno %d", tid, i, errno);
    }
    for (int i = 0; i < 4; i++)
        close(fds[i]);
}

static void registers(pid_t tid) {
    if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0) {
        violation("thread %d cannot be traced: errno %d", tid, errno);
        return;
    }
    int status;
    NEED(ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 && waitpid(tid, &status, __WALL) == tid);
    for (int number = 0; number < 8; number++) {
        if (number == 4 || number == 5 || number == 6)
            continue;
        errno = 0;
        long value = ptrace(PTRACE_PEEKUSER, tid, offsetof(struct user, u_debugreg) + number * sizeof(long), 0);
        CHECK(errno == 0 && value == 0, "thread %d: debug register %d is %lx, errno %d", tid, number, value, errno);
    }
    NEED(ptrace(PTRACE_DETACH, tid, 0, 0) == 0);
}

int main(int argc, char **argv) {
    char path[64];
    NEED(argc == 2);
    snprintf(path, sizeof path, "/proc/%d/task", atoi(argv[1]));
    DIR *tasks = opendir(path);
    NEED(tasks);
    for (struct dirent *task; (task = readdir(tasks));) {
        pid_t tid = atoi(task->d_name);
        if (tid > 0) {
            breakpoints(tid);
            registers(tid);
        }
    }
    closedir(tasks);
    return violations ? 1 : 0;
}
