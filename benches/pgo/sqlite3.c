/* Runs a file of SQL on a database in memory, so many times; prints the rows. */
#include <stdio.h>
#include <stdlib.h>

#include "sqlite3.h"

static int row(void *unused, int columns, char **values, char **names) {
    (void)unused, (void)names;
    for (int i = 0; i < columns; i++) printf("%s%c", values[i] ? values[i] : "", i + 1 < columns ? '|' : '\n');
    return 0;
}

int main(int argc, char **argv) {
    static char sql[1 << 20];
    FILE *file = argc > 2 ? fopen(argv[2], "r") : NULL;
    if (!file) return 2;
    sql[fread(sql, 1, sizeof sql - 1, file)] = 0;
    for (int left = atoi(argv[1]); left > 0; left--) {
        sqlite3 *database;
        char *error = NULL;
        if (sqlite3_open(":memory:", &database) || sqlite3_exec(database, sql, row, NULL, &error)) {
            fprintf(stderr, "%s\n", error ? error : "cannot open");
            return 1;
        }
        if (sqlite3_close(database)) return 1;
    }
    return 0;
}
