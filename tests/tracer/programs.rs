//! Small programs to trace, compiled when needed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `work` until the thread has used that many milliseconds of CPU time.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#define KEEP __attribute__((noinline, noclone))
static KEEP long used(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
"#;

/// `hot MS`: loops, calls, calls through a table.
pub const HOT: &str = r#"
static volatile unsigned long sink;
KEEP unsigned long hot_loop(unsigned long x) {
    for (int i = 0; i < 64; i++) {
        if (x & 1) x = x * 3 + 1; else x >>= 1;
        x ^= i;
    }
    return x;
}
KEEP unsigned long leaf(unsigned long x) { return x * 6364136223846793005ul + 1442695040888963407ul; }
KEEP unsigned long hot_calls(unsigned long x) {
    for (int i = 0; i < 32; i++) x = leaf(x) ^ x >> 7;
    return x;
}
static KEEP unsigned long add(unsigned long x) { return x + 0x9e3779b97f4a7c15ul; }
static KEEP unsigned long twist(unsigned long x) { return x << 13 ^ x >> 51; }
static KEEP unsigned long mix(unsigned long x) { return x * 31 ^ x >> 3; }
static unsigned long (*volatile table[])(unsigned long) = {add, twist, mix};
KEEP unsigned long hot_indirect(unsigned long x) {
    for (int i = 0; i < 32; i++) x = table[x % 3](x);
    return x;
}
int main(int argc, char **argv) {
    long end = used() + (argc > 1 ? atol(argv[1]) : 300);
    do {
        for (int i = 0; i < 1000; i++) sink += hot_indirect(hot_calls(hot_loop(sink + i)));
    } while (used() < end);
    return 0;
}
"#;

/// `varied MS`: recursion, a switch, SIMD, x87, string instructions.
pub const VARIED: &str = r#"
static volatile unsigned long sink;
static volatile float floats[64];
static volatile long double extended = 1.25L;
KEEP unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
KEEP unsigned long choose(unsigned long x) {
    switch (x % 11) {
    case 0: return x + 3;
    case 1: return x ^ 0x55;
    case 2: return x * 7;
    case 3: return x >> 2;
    case 4: return x - 99;
    case 5: return ~x;
    case 6: return x << 3 | x >> 61;
    case 7: return x / 3;
    case 8: return x % 1000003;
    case 9: return x | 1;
    default: return x + (x >> 9);
    }
}
typedef float vector __attribute__((vector_size(16)));
KEEP vector simd(vector a) {
    vector b = a;
    for (int i = 0; i < 40; i++) { b = b * a + a; a = a - b * (vector){0.5f, 0.25f, 0.125f, 1.0f}; }
    return a;
}
KEEP long double x87(long double x) {
    for (int i = 0; i < 20; i++) x = x * 0.75L + __builtin_sqrtl(x + i);
    return x;
}
static char from[200], to[200];
int main(int argc, char **argv) {
    long end = used() + (argc > 1 ? atol(argv[1]) : 300);
    vector v = {1, 2, 3, 4};
    do {
        for (int i = 0; i < 100; i++) {
            sink += fib(9) + choose(sink + i);
            v = simd(v) * 0.001f + 1.0f;
            floats[i % 64] = v[i % 4];
            extended = x87(extended);
            memset(from, (int)sink, 1 + sink % 199);
            memcpy(to, from, 1 + i);
            sink += strlen(to);
        }
    } while (used() < end);
    return 0;
}
"#;

/// `known MS`: nearly all time in a loop of 43 instructions: a mov, ten times (add, lea, dec, jne), a dec, a jne.
pub const KNOWN: &str = r#"
unsigned long known(unsigned long rounds);
__asm__(".text\n.p2align 6\n.globl known\n.type known, @function\n"
        "known:\n"
        "known_outer: mov $10, %ecx\n"
        "known_inner: add $1, %rax\n lea 1(%rdx), %rdx\n dec %ecx\n"
        "known_inner_end: jne known_inner\n"
        " dec %rdi\n"
        "known_outer_end: jne known_outer\n ret\n"
        ".size known, . - known\n");
int main(int argc, char **argv) {
    long end = used() + (argc > 1 ? atol(argv[1]) : 300);
    do known(3000000); while (used() < end);
    return 0;
}
"#;

/// `speeds MS`: four functions in turns, of 6, 30, 6 and 1.5 million instructions, which take a millisecond or two each. How fast they are
/// is decided by what waits for what: a chain of multiplications, sums that do not depend on each other, a branch like a coin, a chain of
/// loads from 256 KiB.
pub const SPEEDS: &str = r#"
KEEP unsigned long chained(unsigned long x) {
    unsigned long n = 2000000;
    __asm__ volatile("1: imul %0, %0\n dec %1\n jne 1b" : "+r"(x), "+r"(n));
    return x;
}
KEEP unsigned long independent(unsigned long x) {
    unsigned long n = 3000000;
    __asm__ volatile("1: add $1, %%rax\n add $2, %%rcx\n add $3, %%rdx\n add $4, %%rsi\n add $5, %%rdi\n add $6, %%r8\n"
                     "add $7, %%r9\n add $8, %%r10\n dec %0\n jne 1b"
                     : "+r"(n) : : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "cc");
    return x;
}
KEEP unsigned long coin(unsigned long x) {
    unsigned long n = 923076, t;
    __asm__ volatile("1: imul %3, %0\n add $12345, %0\n bt $40, %0\n jc 2f\n nop\n 2: dec %1\n jne 1b\n xor %2, %2"
                     : "+r"(x), "+r"(n), "=r"(t) : "r"(6364136223846793005ul) : "cc");
    return x;
}
struct node { struct node *next; long rest[7]; };
static struct node nodes[1 << 12];
KEEP unsigned long far(unsigned long x) {
    struct node *at = nodes + (x & 0xfff);
    unsigned long n = 500000;
    __asm__ volatile("1: mov (%0), %0\n dec %1\n jne 1b" : "+r"(at), "+r"(n) : : "cc", "memory");
    return at - nodes;
}
int main(int argc, char **argv) {
    unsigned long x = 1;
    for (unsigned long i = 0; i < 1 << 12; i++) nodes[i].next = nodes + ((i * 84589 + 45989) & 0xfff);
    long end = used() + (argc > 1 ? atol(argv[1]) : 300);
    do x = far(coin(independent(chained(x)))); while (used() < end);
    return x == 0;
}
"#;

/// As much code before system calls as after them; says how many were interrupted.
pub const AROUND: &str = r#"
#include <poll.h>
KEEP unsigned before(unsigned x) { for (int i = 0; i < 4000; i++) x = x * 3 + i; return x; }
KEEP unsigned after(unsigned x) { for (int i = 0; i < 4000; i++) x = x * 5 + i; return x; }
int main(int argc, char **argv) {
    unsigned x = argc;
    long interrupted = 0;
    for (long i = atol(argv[1]); i > 0; i--) {
        x = before(x);
        struct timespec pause = {0, 20000};
        if (i % 8 == 0) interrupted += nanosleep(&pause, 0) < 0;
        for (int calls = 0; calls < 50; calls++) interrupted += poll(0, 0, 0) < 0;
        x = after(x);
    }
    printf("%u, %ld interrupted\n", x, interrupted);
    return interrupted != 0;
}
"#;

/// `calls KIND MS`: cheap system calls of a kind, with some work between them; `sleep` sleeps for a millisecond.
pub const CALLS: &str = r#"
static volatile unsigned long sink;
KEEP void between(void) { for (int i = 0; i < 20; i++) sink += i; }
int main(int argc, char **argv) {
    long end = used() + (argc > 2 ? atol(argv[2]) : 300);
    char kind = argc > 1 ? argv[1][0] : 'r', buffer[16];
    int zero = open("/dev/zero", O_RDWR);
    struct timespec now, pause = {0, 1000000};
    do {
        for (int i = 0; i < 200; i++) {
            between();
            switch (kind) {
            case 'r': if (read(zero, buffer, 16) != 16) return 1; break;
            case 'w': if (write(zero, buffer, 16) != 16) return 1; break;
            case 'g': sink += syscall(SYS_getpid); break;
            case 'c': syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now); sink += now.tv_nsec; break;
            case 'v': clock_gettime(CLOCK_MONOTONIC, &now); sink += now.tv_nsec; break;
            case 's': nanosleep(&pause, 0); for (int j = 0; j < 2000; j++) between(); break;
            }
        }
    } while (used() < end);
    return 0;
}
"#;

/// `threads MS`: eight threads, the n-th of which uses n times that much CPU time in its own function, which lasts as long as
/// the others.
pub const THREADS: &str = r#"
static long unit;
static volatile unsigned long sinks[9 * 16];
#define WORKER(n) \
    static KEEP void spin_##n(void) { for (int i = 0; i < 20000; i++) sinks[n * 16] += i; } \
    static void *worker_##n(void *unused) { do spin_##n(); while (used() < n * unit); return unused; }
WORKER(1) WORKER(2) WORKER(3) WORKER(4) WORKER(5) WORKER(6) WORKER(7) WORKER(8)
int main(int argc, char **argv) {
    void *(*workers[])(void *) = {worker_1, worker_2, worker_3, worker_4, worker_5, worker_6, worker_7, worker_8};
    pthread_t started[8];
    unit = argc > 1 ? atol(argv[1]) : 20;
    for (int i = 0; i < 8; i++) pthread_create(&started[i], 0, workers[i], 0);
    for (int i = 0; i < 8; i++) pthread_join(started[i], 0);
    return 0;
}
"#;

/// `many SECONDS`: thirty threads that compute for a millisecond, and sleep for seventy, until so much time has passed.
pub const MANY: &str = r#"
static volatile unsigned long sinks[30 * 16];
static time_t end;
static KEEP void *compute(void *index) {
    struct timespec rest = {0, 70000000};
    while (time(0) < end) {
        long until = used() + 1;
        do for (int i = 0; i < 1000; i++) sinks[(long)index * 16] += i; while (used() < until);
        nanosleep(&rest, 0);
    }
    return 0;
}
int main(int argc, char **argv) {
    pthread_t started[30];
    end = time(0) + (argc > 1 ? atol(argv[1]) : 10);
    for (long i = 0; i < 30; i++) pthread_create(&started[i], 0, compute, (void *)i);
    for (int i = 0; i < 30; i++) pthread_join(started[i], 0);
    return 0;
}
"#;

/// `holder PID`: traces a process for as long as its standard input is open, and says when it does.
pub const HOLDER: &str = r#"
int main(int argc, char **argv) {
    pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
    if (ptrace(PTRACE_SEIZE, pid, 0, 0) != 0) { perror("ptrace"); return 1; }
    puts("traced");
    fflush(stdout);
    while (getchar() != EOF) {}
    return 0;
}
"#;

/// `rewrite HOW`: makes code, runs it, and rewrites it at the same address, in memory that is writable and executable (`rwx`), either (`wx`), or
/// mapped twice (`twice`). Its perf map names the rewritten function; the other one has no name. Prints the path of the map.
pub const REWRITE: &str = r#"
#include <sys/mman.h>
typedef long function(long times, long, long, long by);

static unsigned char *writable, *code;
static int protects;

static void put(int at, const unsigned char *bytes, int length)
{
    if (protects)
        mprotect(code, 4096, PROT_READ | PROT_WRITE);
    memcpy(writable + at, bytes, length);
    if (protects)
        mprotect(code, 4096, PROT_READ | PROT_EXEC);
}

int main(int argc, char **argv)
{
    // xor eax,eax; add rax,rcx; dec rdi; jne; ret
    static const unsigned char add[] = {0x31, 0xc0, 0x48, 0x01, 0xc8, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
    // xor eax,eax; imul rax,rcx; dec rdi; jne; ret
    static const unsigned char multiply[] = {0x31, 0xc0, 0x48, 0x0f, 0xaf, 0xc1, 0x48, 0xff, 0xcf, 0x75, 0xf7, 0xc3};
    // xor eax,eax; inc rax; dec rdi; jne; ret
    static const unsigned char count[] = {0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
    const char *how = argc > 1 ? argv[1] : "wx";
    if (strcmp(how, "late") == 0) {
        // What is mapped costs more to read, and is read less often for that.
        for (int part = 0; part < 3000; part++)
            mmap(0, 4096, part % 2 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (volatile long turn = 0; turn < 100000000; turn++)
            ;
    }
    if (strcmp(how, "twice") == 0) {
        int file = memfd_create("code", 0);
        if (ftruncate(file, 4096) != 0)
            return 1;
        writable = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        code = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    } else {
        protects = strcmp(how, "wx") == 0;
        int protection = PROT_READ | PROT_WRITE | (protects ? 0 : PROT_EXEC);
        writable = code = mmap(0, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    put(1024, count, sizeof count);
    long sum = 0;
    for (int round = 0; round < 6; round++) {
        put(0, round % 2 ? multiply : add, round % 2 ? sizeof multiply : sizeof add);
        sum += ((function *)code)(50000000, 0, 0, 3);
        sum += ((function *)(code + 1024))(10000000, 0, 0, 3);
    }
    char path[64];
    sprintf(path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx 20 rewritten code\n", (unsigned long)code);
    fclose(map);
    puts(path);
    return sum == 42;
}
"#;

/// `patch`: a function that stays, 300 turns, and in the same 64 KiB one of 10 turns, of which an operand is rewritten before each call, by
/// another mapping. It prints where its map is.
pub const PATCH: &str = r#"
#include <sys/mman.h>
#include <sys/syscall.h>
typedef long function(long times, long, long, long by);
enum { SIZE = 0x10000, PATCHED = 0x8000, OPERAND = 5 };

int main(void)
{
    // xor eax,eax; add rax,rcx; dec rdi; jne; ret
    static const unsigned char stays[] = {0x31, 0xc0, 0x48, 0x01, 0xc8, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
    // xor eax,eax; sub rax,1; dec rdi; jne; ret
    static const unsigned char patched[] = {0x31, 0xc0, 0x48, 0x83, 0xe8, 1, 0x48, 0xff, 0xcf, 0x75, 0xf7, 0xc3};
    int file = memfd_create("code", 0);
    if (ftruncate(file, 2 * SIZE) != 0)
        return 1;
    unsigned char *writable = mmap(0, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    unsigned char *code = mmap(0, 2 * SIZE, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    // One of its 64 KiB begins there.
    long first = -(unsigned long)code % SIZE;
    memcpy(writable + first, stays, sizeof stays);
    memcpy(writable + first + PATCHED, patched, sizeof patched);
    long sum = 0;
    for (int round = 0; round < 5000000; round++) {
        sum += ((function *)(code + first))(300, 0, 0, 3);
        writable[first + PATCHED + OPERAND] = 1 + round % 100;
        syscall(SYS_getppid);
        sum += ((function *)(code + first + PATCHED))(10, 0, 0, 3);
    }
    char path[64];
    sprintf(path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    fprintf(map, "%lx b stays\n%lx c patched\n", (unsigned long)(code + first), (unsigned long)(code + first + PATCHED));
    fclose(map);
    puts(path);
    return sum == 42;
}
"#;

/// `rename HOW`: code that is rewritten, and code that is not, get other names. It names code before it runs it, in a perf map or, if HOW is
/// `dump`, in a jitdump, where code moves, too. It prints where the file is.
pub const RENAME: &str = r#"
#include <sys/mman.h>
typedef long function(long times, long, long, long by);

static FILE *names;
static int dumps;

static long now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void record(int kind, long length)
{
    int head[2] = {kind, (int)length + 24};
    long time = now();
    int ids[2] = {getpid(), getpid()};
    fwrite(head, sizeof head, 1, names);
    fwrite(&time, sizeof time, 1, names);
    fwrite(ids, sizeof ids, 1, names);
}

static void name(unsigned char *at, long length, const char *name, long index)
{
    if (dumps) {
        long words[4] = {(long)at, (long)at, length, index};
        record(0, sizeof words + strlen(name) + 1 + length);
        fwrite(words, sizeof words, 1, names);
        fwrite(name, strlen(name) + 1, 1, names);
        fwrite(at, length, 1, names);
    } else {
        fprintf(names, "%lx %lx %s\n", (unsigned long)at, length, name);
    }
    fflush(names);
}

int main(int argc, char **argv)
{
    // xor eax,eax; add rax,rcx; dec rdi; jne; ret
    static const unsigned char add[] = {0x31, 0xc0, 0x48, 0x01, 0xc8, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
    // xor eax,eax; imul rax,rcx; dec rdi; jne; ret
    static const unsigned char multiply[] = {0x31, 0xc0, 0x48, 0x0f, 0xaf, 0xc1, 0x48, 0xff, 0xcf, 0x75, 0xf7, 0xc3};
    char path[64];
    dumps = argc > 1 && strcmp(argv[1], "dump") == 0;
    sprintf(path, dumps ? "jit-%d.dump" : "/tmp/perf-%d.map", getpid());
    names = fopen(path, "w+");
    if (dumps) {
        int header[10] = {0x4a695444, 1, 40, 62, 0, getpid()};
        fwrite(header, sizeof header, 1, names);
        fflush(names);
        // Recorders learn of the file by this.
        if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(names), 0) == MAP_FAILED)
            return 1;
    }
    unsigned char *code = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    for (int round = 0; round < 2; round++) {
        memcpy(code, add, sizeof add);
        name(code, sizeof add, "adds", 1);
        sum += ((function *)code)(300000000, 0, 0, 3);
        if (dumps) {
            memcpy(code + 4096, add, sizeof add);
            if (round == 0)
                name(code + 4096, sizeof add, "moved", 2);
            long words[5] = {(long)code + 4096, (long)code, (long)code + 4096, sizeof add, 2};
            record(1, sizeof words);
            fwrite(words, sizeof words, 1, names);
            fflush(names);
            sum += ((function *)(code + 4096))(100000000, 0, 0, 3);
        }
        memcpy(code, multiply, sizeof multiply);
        name(code, sizeof multiply, "multiplies", 3);
        sum += ((function *)code)(200000000, 0, 0, 3);
        name(code, sizeof multiply, "renamed", 4);
        sum += ((function *)code)(200000000, 0, 0, 3);
    }
    puts(path);
    return sum == 42;
}
"#;

/// Makes code in memory without a file, and executes it for more than a second: `once`, or `twice`, and then others for as long. Before the code
/// are bytes that are none, and would swallow the first of it. It says where its perf map is, if `named` is said, too.
pub const MAKE: &str = r#"
#include <sys/mman.h>
typedef long function(long times, long, long, long by);

// What begins a movabs; then xor eax,eax; add rax,rcx; dec rdi; jne; ret
static const unsigned char add[] = {0x48, 0xb8, 0x31, 0xc0, 0x48, 0x01, 0xc8, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
// xor eax,eax; sub rax,rcx; dec rdi; jne; ret
static const unsigned char subtract[] = {0x48, 0xb8, 0x31, 0xc0, 0x48, 0x29, 0xc8, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};

int main(int argc, char **argv)
{
    int versions = strcmp(argv[1], "twice") == 0 ? 2 : 1;
    unsigned char *code = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long sum = 0;
    for (int version = 0; version < versions; version++) {
        memcpy(code + 4096, version ? subtract : add, sizeof add);
        struct timespec now, began;
        clock_gettime(CLOCK_MONOTONIC, &began);
        do {
            sum += ((function *)(code + 4098))(1000000, 0, 0, 3);
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000 < 1500);
    }
    if (argc > 2) {
        char path[64];
        sprintf(path, "/tmp/perf-%d.map", getpid());
        FILE *map = fopen(path, "w");
        fprintf(map, "%lx b made code\n", (unsigned long)code + 4098);
        fclose(map);
        puts(path);
    }
    return sum == 42;
}
"#;

/// `vsyscalls MS`: calls the page of the vsyscalls, which only may be executed, again and again.
pub const VSYSCALLS: &str = r#"
#include <setjmp.h>
#include <signal.h>
static sigjmp_buf back;
static volatile unsigned long sink;
static void fails(int number) { siglongjmp(back, number); }
int main(int argc, char **argv) {
    long (*volatile page_time)(long *) = (long (*)(long *))0xffffffffff600400ul;
    signal(SIGSEGV, fails);
    if (sigsetjmp(back, 1)) { puts("no vsyscalls"); return 0; }
    page_time(0);
    signal(SIGSEGV, SIG_DFL);
    long end = used() + (argc > 1 ? atol(argv[1]) : 300);
    do {
        for (int i = 0; i < 20; i++) {
            sink += page_time(0);
            for (int turn = 0; turn < 2000; turn++) sink += turn * sink;
        }
    } while (used() < end);
    return 0;
}
"#;

/// The program `name`, or `None` (said on stderr) without a C compiler. Its addresses are those of the file.
pub fn compile(folder: &Path, name: &str, source: &str) -> Option<PathBuf> {
    let (file, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&file, format!("{CLOCK}{source}")).unwrap();
    let flags = ["-O2", "-g", "-gdwarf-4", "-no-pie", "-pthread", "-Wl,--build-id", "-Wno-unused-function", "-o"];
    match Command::new("gcc").args(flags).arg(&program).arg(&file).arg("-lm").output() {
        Ok(output) if output.status.success() => Some(program),
        other => {
            testing::skip!(Tool, "cannot compile with gcc: {other:?}");
            None
        }
    }
}

/// Four functions of equal work, some 5 us each, and a sleep, again and again, for three minutes.
pub const QUARTERS: &str = r#"
static volatile unsigned sink;
#define QUARTER(name) \
    KEEP unsigned name(unsigned x) { for (int i = 0; i < 4000; i++) x = x * 1664525u + 1013904223u ^ x >> 5; return x; }
QUARTER(first) QUARTER(second) QUARTER(third) QUARTER(fourth)
int main(void) {
    struct timespec now, rest = {0, 200000};
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (time_t end = now.tv_sec + 180; now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now)) {
        sink += fourth(third(second(first(sink))));
        nanosleep(&rest, 0);
    }
    return 0;
}
"#;

/// `waits US [child]`: computes for some 60 us, sleeps for `US`, and so on, for a minute; with `child`, a child does the same, in a function of its own.
pub const WAITS: &str = r#"
static volatile unsigned sink;
KEEP unsigned often(unsigned x) { for (int i = 0; i < 3000; i++) x = x * 1664525u + 1013904223u ^ x >> 5; return x; }
KEEP unsigned seldom(unsigned x) { for (int i = 0; i < 3000; i++) x = (x << 3 ^ x >> 7) + 77u; return x; }
KEEP unsigned of_child(unsigned x) { for (int i = 0; i < 20000; i++) x = (x << 5 ^ x >> 9) + 99u; return x; }
int main(int argc, char **argv) {
    struct timespec until, rest = {0, 1000 * atol(argv[1])};
    clock_gettime(CLOCK_MONOTONIC, &until);
    time_t end = until.tv_sec + 60;
    int is_child = 0;
    for (unsigned x = 1; until.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &until)) {
        for (int i = 0; i < 6; i++) x = is_child ? of_child(x) : often(x);
        for (int i = 0; i < 2 && !is_child; i++) x = seldom(x);
        sink += x;
        nanosleep(&rest, 0);
        // The child begins when its parent is recorded: it has been asked to by then.
        if (argc > 2 && !is_child && access(argv[2], F_OK) == 0) {
            argc = 2;
            is_child = fork() == 0;
        }
    }
    return 0;
}
"#;
