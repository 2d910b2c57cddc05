/* Floating-point kernels in float, double and long double (x87). */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int mandelbrot(float cx, float cy)
{
    float x = 0, y = 0;
    int n = 0;
    for (; n < 60 && x * x + y * y < 4; n++) {
        float t = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = t;
    }
    return n;
}

static double bodies[5][6];
static double energy(void)
{
    double e = 0;
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 5; j++) {
            if (i == j) continue;
            double d[3], r = 1e-3;
            for (int k = 0; k < 3; k++) d[k] = bodies[i][k] - bodies[j][k], r += d[k] * d[k];
            double f = 1e-3 / (r * sqrt(r));
            for (int k = 0; k < 3; k++) bodies[i][3 + k] -= d[k] * f;
            e += f;
        }
        for (int k = 0; k < 3; k++) bodies[i][k] += 1e-3 * bodies[i][3 + k];
    }
    return e;
}

static long double series(long double x)
{
    long double sum = 1, term = 1;
    for (int i = 1; i < 30; i++) term *= x / i, sum += term;
    return sum + sinl(x) * cosl(x) + atan2l(x, 2) + fmodl(x * 1e6L, 3.7L) + sqrtl(x) + floorl(x * 10) + log1pl(x) +
           expl(-x) + (x > 1.5L) + (long long)(x * 1000) + fabsl(-x);
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    int pixels = 0;
    double e = 0;
    long double s = 0;
    static const int modes[] = { FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO };
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 6; k++) bodies[i][k] = sin(i * 7 + k);
    for (long r = 0; r < rounds; r++) {
        fesetround(modes[r % 8 < 4 ? 0 : r % 4]);
        for (int i = 0; i < 20; i++) pixels += mandelbrot(-2 + (r % 100) * 0.03f, -1 + i * 0.1f);
        e += energy() + pow(1.0001, r % 1000) + exp(-(r % 50)) + log(r + 1) + nearbyint(e * 10) + cbrt(e + r);
        for (int i = 0; i < 10; i++) s += series((r % 17) * 0.1L + i * 0.01L);
        char text[100];
        snprintf(text, sizeof text, "%d %.17g %.10f %Lg %a", pixels, e, e, s, e);
        e = e * 0.5 + strtod(text + 2, 0) * 1e-9 + strtold("1.25e-3", 0);
    }
    printf("%d %g %Lg\n", pixels, e, s);
    return 0;
}
