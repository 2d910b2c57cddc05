/* Parses a file of XML and counts its elements, attributes and characters, so many times. */
#include <stdio.h>
#include <stdlib.h>

#include "expat.h"

#define ROOM (64 << 20)

static long elements, attributes, characters;

static void start(void *unused, const XML_Char *name, const XML_Char **values) {
    (void)unused, (void)name;
    elements++;
    for (; *values; values += 2) attributes++;
}

static void text(void *unused, const XML_Char *data, int length) {
    (void)unused, (void)data;
    characters += length;
}

int main(int argc, char **argv) {
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    if (!file) return 2;
    char *data = malloc(ROOM);
    int size = fread(data, 1, ROOM, file);
    for (int left = atoi(argv[1]); left > 0; left--) {
        XML_Parser parser = XML_ParserCreate(NULL);
        XML_SetElementHandler(parser, start, NULL);
        XML_SetCharacterDataHandler(parser, text);
        if (XML_Parse(parser, data, size, 1) != XML_STATUS_OK) return 1;
        XML_ParserFree(parser);
    }
    printf("%ld %ld %ld\n", elements, attributes, characters);
    return 0;
}
