/* jit [MS]: code made at run time, other code at the same address each time: in a page that can always be written and executed (at
 * 0x7d0000000000), and in one that is made writable and executable in turn (at 0x7d0000100000). All code lies in the first 64
 * bytes of its page; the rest are breakpoints, which nothing may reach. */
#include "torture.h"
#include <sys/mman.h>

enum { PAGE = 4096, CODE = 64, KINDS = 3 };

static uint8_t *put(uint8_t *at, const void *bytes, size_t length) { return memcpy(at, bytes, length), at + length; }

/* A function that adds `step` `times` times; its instructions lie elsewhere for each kind. */
static void generate(uint8_t *page, int kind, uint32_t step, uint32_t times) {
    uint8_t code[CODE], *at = code;
    memset(code, 0xcc, sizeof code);
    /* kind 1: behind a jump; kind 2: in a function that this one calls. */
    if (kind == 1)
        at = put(at, "\xeb\x05\xcc\xcc\xcc\xcc\xcc", 7);
    if (kind == 2)
        at = put(at, "\xe8\x03\x00\x00\x00\x90\xc3\xcc", 8);
    at = put(at, "\x31\xc0\xb9", 3); /* xor eax, eax; mov ecx, times */
    at = put(at, &times, 4);
    at = put(at, "\x05", 1); /* again: add eax, step */
    at = put(at, &step, 4);
    put(at, "\xff\xc9\x75\xf7\xc3", 5); /* dec ecx; jnz again; ret */
    memcpy(page, code, sizeof code);
}

static uint8_t *map(uintptr_t at, int protection) {
    void *page = mmap((void *)at, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    NEED(page == (void *)at);
    memset(page, 0xcc, PAGE);
    NEED(mprotect(page, PAGE, protection) == 0);
    return page;
}

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 800);
    uint8_t *both = map(0x7d0000000000, PROT_READ | PROT_WRITE | PROT_EXEC);
    uint8_t *toggled = map(0x7d0000100000, PROT_READ | PROT_EXEC);
    announce();
    for (uint32_t round = 1; goes_on(end); round++) {
        uint32_t times = 50 + round % 1000;
        generate(both, round % KINDS, round, times);
        uint32_t result = ((uint32_t(*)(void))(uintptr_t)both)();
        CHECK(result == round * times, "kind %d: %u instead of %u", round % KINDS, result, round * times);
        NEED(mprotect(toggled, PAGE, PROT_READ | PROT_WRITE) == 0);
        generate(toggled, (round + 1) % KINDS, ~round, times);
        NEED(mprotect(toggled, PAGE, PROT_READ | PROT_EXEC) == 0);
        result = ((uint32_t(*)(void))(uintptr_t)toggled)();
        CHECK(result == ~round * times, "toggled, kind %d: %u instead of %u", round % KINDS, result, ~round * times);
        if (violations)
            break;
    }
    return finish("made code does what it was made for");
}
