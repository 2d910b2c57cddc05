# A surface with hidden lines, and a fit. Needs `n`, the samples along each side.
set term svg
set output "/dev/null"
set hidden3d
set isosamples n
set samples n
splot sin(x * y) / (x**2 + 1) + cos(x) * y
set output "/dev/null"
set contour
splot exp(-x**2 / 20 - y**2 / 30) * sin(x)
f(x) = a * x**2 + b * x + c
a = 1; b = 1; c = 1
fit f(x) "+" using 1:(3 * $1**2 - 2 * $1 + sin($1)) via a, b, c
