/* stack [MS]: recursion 100,000 deep on stacks that grow to 100 MB meanwhile, of the first thread and of another, and large
 * arrays on the stack that are touched from the far end. */
#include "torture.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { LEVELS = 100000, FRAME = 900 };
static const size_t STACK = 256ul << 20;
static int64_t end;

__attribute__((noinline)) static uint64_t deep(int level) {
    volatile char frame[FRAME];
    frame[level % FRAME] = level;
    uint64_t below = level ? deep(level - 1) : 0;
    CHECK(frame[level % FRAME] == (char)level, "level %d lost its own", level);
    return below + level % 7;
}

__attribute__((noinline)) static uint64_t wide(int megabytes) {
    size_t length = (size_t)megabytes << 20;
    volatile char *array = __builtin_alloca(length);
    array[0] = 3;
    for (size_t i = 4096; i < length; i += 4096)
        array[i] = array[i - 4096] + 1;
    return (uint64_t)array[0] + length;
}

static void *recurse(void *unused) {
    uint64_t expected = 0;
    for (int level = 0; level <= LEVELS; level++)
        expected += level % 7;
    do {
        CHECK(deep(LEVELS) == expected, "the sum is wrong");
        for (int megabytes = 1; megabytes < 64; megabytes *= 2)
            CHECK(wide(megabytes) == 3 + ((uint64_t)megabytes << 20), "an array of %d MB is wrong", megabytes);
    } while (goes_on(end));
    return unused;
}

int main(int argc, char **argv) {
    end = now_ns() + duration_ns(argc, argv, 500);
    struct rlimit limit;
    NEED(getrlimit(RLIMIT_STACK, &limit) == 0);
    NEED(limit.rlim_max >= STACK);
    limit.rlim_cur = STACK;
    NEED(setrlimit(RLIMIT_STACK, &limit) == 0);
    announce();
    pthread_attr_t large;
    pthread_attr_init(&large);
    NEED(pthread_attr_setstacksize(&large, STACK) == 0);
    pthread_t thread;
    NEED(pthread_create(&thread, &large, recurse, NULL) == 0);
    recurse(NULL);
    NEED(pthread_join(thread, NULL) == 0);
    return finish("every level kept its own");
}
