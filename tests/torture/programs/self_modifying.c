/* self_modifying [MS]: code that changes itself. At 0x7d0000200000 is a function that toggles the target of the jump right behind:
 *
 *     +0   xor byte [rip + 1], 0x20      the displacement of the jump
 *     +7   jmp +0x10 or +0x30            to +25 or +57, in turns
 *     +25  lea eax, [rdi + 1]; ret
 *     +57  lea eax, [rdi + 2]; ret
 *
 * so that whoever looks at the branches must see the one at +7 go to both places in turns. A second function writes an
 * operand that it then uses. */
#include "torture.h"
#include <sys/mman.h>

enum { PAGE = 4096, OPERAND = 512 };

int main(int argc, char **argv) {
    int64_t end = now_ns() + duration_ns(argc, argv, 700);
    uint8_t *page = mmap((void *)0x7d0000200000, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    NEED(page == (void *)0x7d0000200000);
    memset(page, 0xcc, PAGE);
    memcpy(page, "\x80\x35\x01\x00\x00\x00\x20\xeb\x10", 9);
    memcpy(page + 25, "\x8d\x47\x01\xc3", 4);
    memcpy(page + 57, "\x8d\x47\x02\xc3", 4);
    /* mov [rip + 1], edi; mov eax, (what was just written); ret */
    memcpy(page + OPERAND, "\x89\x3d\x01\x00\x00\x00\xb8\x00\x00\x00\x00\xc3", 12);
    uint32_t (*jump)(uint32_t) = (uint32_t(*)(uint32_t))(uintptr_t)page;
    uint32_t (*operand)(uint32_t) = (uint32_t(*)(uint32_t))(uintptr_t)(page + OPERAND);
    announce();
    for (uint32_t round = 0; goes_on(end) && !violations;)
        for (int i = 0; i < 2000; i++, round++) {
            uint32_t added = jump(round) - round, expected = round & 1 ? 1 : 2;
            CHECK(added == expected, "jump: %u instead of %u in round %u", added, expected, round);
            CHECK(operand(round * 7) == round * 7, "operand: not %u", round * 7);
        }
    return finish("what was changed was executed");
}
