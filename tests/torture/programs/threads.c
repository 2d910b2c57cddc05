/* threads [MS [POOL]]: 400 threads (or POOL) that live, and others that are created and joined all the time; all check what they
 * compute. */
#include "torture.h"
#include <pthread.h>

enum { POOL = 400, CHURNERS = 4, BATCH = 8 };

static uint64_t expected[POOL];
static atomic_int over;
static atomic_ulong all_items, all_born;
static __thread uint64_t mine;

struct member {
    pthread_t thread;
    uint64_t id, items;
};

static void *pool(void *argument) {
    struct member *self = argument;
    pid_t tid = gettid();
    mine = self->id * 77 + 5;
    while (!atomic_load(&over)) {
        for (int i = 0; i < 8; i++) {
            CHECK(work(self->id, 20) == expected[self->id], "thread %ld computes wrong", (long)self->id);
            self->items++;
            atomic_fetch_add(&all_items, 1);
        }
        CHECK(mine == self->id * 77 + 5, "thread %ld lost its own variable", (long)self->id);
        CHECK(gettid() == tid, "thread %ld is %d now", (long)self->id, gettid());
        sleep_us(20000);
    }
    return (void *)mine;
}

static void *short_lived(void *argument) {
    uint64_t id = (uint64_t)argument;
    mine = id;
    uint64_t result = work(id, 10 + id % 7);
    atomic_fetch_add(&all_born, 1);
    return (void *)(result + mine);
}

static void *churn(void *argument) {
    struct member *self = argument;
    pthread_t batch[BATCH];
    // Once at least: on a busy machine time may be up before this thread runs.
    do {
        for (uint64_t i = 0; i < BATCH; i++)
            NEED(pthread_create(&batch[i], NULL, short_lived, (void *)(self->id + i)) == 0);
        for (uint64_t i = 0; i < BATCH; i++) {
            void *result;
            NEED(pthread_join(batch[i], &result) == 0);
            uint64_t id = self->id + i;
            CHECK((uint64_t)result == work(id, 10 + id % 7) + id, "a short-lived thread returns wrong");
            self->items++;
        }
    } while (!atomic_load(&over));
    return NULL;
}

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 800);
    int alive = argc > 2 ? atoi(argv[2]) : POOL;
    NEED(alive > 0 && alive <= POOL);
    static struct member members[POOL], churners[CHURNERS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 * 1024);
    for (int i = 0; i < alive; i++)
        expected[i] = work(i, 20);
    for (int i = 0; i < alive; i++) {
        members[i].id = i;
        NEED(pthread_create(&members[i].thread, &small, pool, &members[i]) == 0);
    }
    for (int i = 0; i < CHURNERS; i++) {
        churners[i].id = i * 100;
        NEED(pthread_create(&churners[i].thread, &small, churn, &churners[i]) == 0);
    }
    announce();
    while (goes_on(end))
        sleep_us(5000);
    atomic_store(&over, 1);
    uint64_t items = 0, born = 0;
    for (int i = 0; i < alive; i++) {
        void *own;
        NEED(pthread_join(members[i].thread, &own) == 0);
        CHECK((uint64_t)own == i * 77ul + 5, "thread %d returns wrong", i);
        items += members[i].items;
    }
    for (int i = 0; i < CHURNERS; i++) {
        NEED(pthread_join(churners[i].thread, NULL) == 0);
        born += churners[i].items;
    }
    CHECK(items == all_items && items > 0, "%ld items done, %ld counted", (long)items, (long)all_items);
    CHECK(born == all_born && born > 0, "%ld threads born, %ld counted", (long)born, (long)all_born);
    return finish("threads that live and threads that do not add up");
}
