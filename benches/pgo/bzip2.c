/* Compresses a file with blocks of a size, and decompresses it, in memory, so many times. */
#include <stdio.h>
#include <stdlib.h>

#include "bzlib.h"

#define ROOM (64 << 20)

int main(int argc, char **argv) {
    FILE *file = argc > 3 ? fopen(argv[3], "rb") : NULL;
    if (!file) return 2;
    char *data = malloc(ROOM), *out = malloc(ROOM);
    unsigned size = fread(data, 1, ROOM, file), compressed = 0;
    for (int left = atoi(argv[1]); left > 0; left--) {
        unsigned back = ROOM;
        compressed = ROOM;
        if (BZ2_bzBuffToBuffCompress(out, &compressed, data, size, atoi(argv[2]), 0, 0) != BZ_OK) return 1;
        if (BZ2_bzBuffToBuffDecompress(data, &back, out, compressed, 0, 0) != BZ_OK || back != size) return 1;
    }
    printf("%u\n", compressed);
    return 0;
}
