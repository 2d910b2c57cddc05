/* Compresses a file at a level, in memory. */
#include <stdio.h>
#include <stdlib.h>

#define ZSTD_STATIC_LINKING_ONLY
#include "zstd.h"

int main(int argc, char **argv) {
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    if (!file) return 2;
    size_t room = 64 << 20;
    char *data = malloc(room);
    size_t size = fread(data, 1, room, file), bound = ZSTD_compressBound(size);
    char *out = malloc(bound);
    size_t compressed = ZSTD_compress(out, bound, data, size, atoi(argv[1]));
    printf("%zu\n", compressed);
    return ZSTD_isError(compressed) != 0;
}
