/* Compresses a file with blocks of a size, and decompresses it, in memory. */
#include <stdio.h>
#include <stdlib.h>

#include "bzlib.h"

int main(int argc, char **argv) {
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    if (!file) return 2;
    unsigned size, compressed = 64 << 20, back = 64 << 20;
    char *data = malloc(back), *out = malloc(compressed);
    size = fread(data, 1, back, file);
    if (BZ2_bzBuffToBuffCompress(out, &compressed, data, size, atoi(argv[1]), 0, 0) != BZ_OK) return 1;
    if (BZ2_bzBuffToBuffDecompress(data, &back, out, compressed, 0, 0) != BZ_OK || back != size) return 1;
    printf("%u\n", compressed);
    return 0;
}
