/* Compresses a file at a level, in memory, so many times. */
#include <stdio.h>
#include <stdlib.h>

#define ZSTD_STATIC_LINKING_ONLY
#include "zstd.h"

int main(int argc, char **argv) {
    FILE *file = argc > 3 ? fopen(argv[3], "rb") : NULL;
    if (!file) return 2;
    size_t room = 64 << 20;
    char *data = malloc(room);
    size_t size = fread(data, 1, room, file), bound = ZSTD_compressBound(size), compressed = 0;
    char *out = malloc(bound);
    for (int left = atoi(argv[1]); left > 0 && !ZSTD_isError(compressed); left--)
        compressed = ZSTD_compress(out, bound, data, size, atoi(argv[2]));
    printf("%zu\n", compressed);
    return ZSTD_isError(compressed) != 0;
}
