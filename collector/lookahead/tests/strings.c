/* The string functions of the C library on all alignments and lengths, and string instructions. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static char a[9000], b[9000];
static unsigned state = 7;
static unsigned next(void) { return state = state * 1664525 + 1013904223, state >> 8; }

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    size_t sum = 0;
    wchar_t wide[64] = L"some wide text that is looked through";
    for (long r = 0; r < rounds; r++) {
        size_t from = next() % 70, length = next() % (r % 16 ? 300 : 8000);
        char *x = a + from, *y = b + next() % 70;
        for (size_t i = 0; i < length % 64; i++) x[i] = 'a' + next() % 26;
        x[length] = 0;
        sum += strlen(x) + strnlen(x, 100) + (strchr(x, 'q') != 0) + (strrchr(x, 'e') != 0) + (memchr(x, 0, length + 1) != 0);
        memcpy(y, x, length + 1);
        sum += strcmp(x, y) + strncmp(x, y, 20) + memcmp(x, y, length) + strcasecmp(x, y);
        sum += (strstr(x, "ab") != 0) + (memmem(x, length, "xyz", 3) != 0) + strspn(x, "abcdef") + strcspn(x, "xyz") + (strpbrk(x, "uvw") != 0);
        memmove(y + 3, y, length);
        memset(x + 5, 'b' + r % 20, length);
        y[length + 3] = 0;
        strcpy(x, y);
        sum += (char *)rawmemchr(x, 0) - x + wcslen(wide + r % 8) + (wcschr(wide, L'k') != 0) + (memrchr(y, 'a', length) != 0);
        const char *source = x;
        char *target = y;
        size_t bytes = length, words = length / 8;
        asm volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(bytes)::"memory");
        source = x, target = y;
        asm volatile("rep movsq" : "+S"(source), "+D"(target), "+c"(words)::"memory");
        bytes = length;
        source = x, target = y;
        asm volatile("repe cmpsb" : "+S"(source), "+D"(target), "+c"(bytes)::"memory", "cc");
        sum += bytes;
        bytes = length;
        target = y;
        asm volatile("repne scasb" : "+D"(target), "+c"(bytes) : "a"(next() % 128) : "memory", "cc");
        sum += bytes;
        words = length / 8 % 16;
        source = x + 128, target = y + 128;
        asm volatile("std; rep movsq; rep stosb; cld" : "+S"(source), "+D"(target), "+c"(words) : "a"(r) : "memory", "cc");
        bytes = length % 50;
        target = y;
        asm volatile("rep stosb" : "+D"(target), "+c"(bytes) : "a"(r) : "memory");
    }
    printf("%zu\n", sum);
    return 0;
}
