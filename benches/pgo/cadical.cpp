/* Solves a formula, so many times, from three seeds in turn. */
#include <cstdio>
#include <cstdlib>

#include "cadical.hpp"

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    int satisfiable = 0, times = atoi(argv[1]);
    for (int time = 0; time < times; time++) {
        CaDiCaL::Solver solver;
        solver.set("seed", time % 3);
        int variables;
        if (const char *error = solver.read_dimacs(argv[2], variables)) return fprintf(stderr, "%s\n", error), 1;
        satisfiable += solver.solve() == 10;
    }
    printf("%d of %d\n", satisfiable, times);
    return 0;
}
