// Floating point in vector registers: multiplies matrices and smooths the product, `matrix ROUNDS`.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 192 };

static float a[N][N], b[N][N], c[N][N];

static void multiply(void) {
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) c[i][j] = 0;
        for (int k = 0; k < N; k++) {
            float factor = a[i][k];
            for (int j = 0; j < N; j++) c[i][j] += factor * b[k][j];
        }
    }
}

static float smooth(void) {
    float sum = 0;
    for (int i = 1; i < N - 1; i++) {
        for (int j = 1; j < N - 1; j++) {
            float mean = (c[i - 1][j] + c[i + 1][j] + c[i][j - 1] + c[i][j + 1]) * 0.25f;
            b[i][j] = sqrtf(fabsf(mean)) * 0.01f;
            sum += b[i][j] > 0.1f ? b[i][j] : 0;
        }
    }
    return sum;
}

int main(int count, char **arguments) {
    long rounds = count > 1 ? atol(arguments[1]) : 100;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = (i * 7 + j) % 13, b[i][j] = (i + j * 5) % 11;
    float sum = 0;
    for (long round = 0; round < rounds; round++) {
        multiply();
        sum += smooth();
    }
    printf("%g\n", sum);
}
