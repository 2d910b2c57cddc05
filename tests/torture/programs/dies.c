/* A shared object that a recorder loads (LD_PRELOAD): it kills itself just before its request number DIES_AT to the kernel about another process, or
   just after it has been told of one. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_long left;
static pid_t self;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("DIES_AT");
    left = at ? atol(at) : 0;
    self = getpid();
    unsetenv("LD_PRELOAD");
}

static void step(void) {
    if (getpid() == self && atomic_fetch_sub(&left, 1) == 1) {
        kill(self, SIGKILL);
        for (;;)
            pause();
    }
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

long ptrace(int request, ...) {
    va_list more;
    va_start(more, request);
    pid_t thread = va_arg(more, pid_t);
    void *address = va_arg(more, void *), *data = va_arg(more, void *);
    va_end(more);
    step();
    return ((long (*)(int, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace"))(request, thread, address, data);
}

pid_t waitpid(pid_t of, int *status, int options) {
    pid_t reported = NEXT(waitpid)(of, status, options);
    if (options & WNOHANG && reported > 0)
        step();
    return reported;
}

int waitid(idtype_t type, id_t of, siginfo_t *info, int options) {
    int done = NEXT(waitid)(type, of, info, options);
    if (done == 0 && info && info->si_pid)
        step();
    return done;
}

ssize_t process_vm_writev(pid_t process, const struct iovec *local, unsigned long locals, const struct iovec *remote,
                          unsigned long remotes, unsigned long flags) {
    step();
    return NEXT(process_vm_writev)(process, local, locals, remote, remotes, flags);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at) {
    step();
    return NEXT(pwrite64)(file, bytes, length, at);
}
