% A loop of the interpreter, then eigenvalues, sorting, Fourier transforms and text.
rounds = str2double (argv (){1});
s = 0;
for i = 1:250000 * rounds
  s = s + mod (i * 7, 13) ^ 2;
  if (s > 1e6)
    s = s / 2;
  end
end
A = reshape (mod ((1:90000) * 7919, 1009), 300, 300) / 1009;
for k = 1:3 * rounds
  [q, r] = qr (A);
  A = r * q;
  e = eig (A(1:100,1:100));
  x = sort (A(:) + k);
  y = fft (A);
  c = regexprep (repmat ('hello world ', 1, 20000), 'o(.)', '$1');
end
printf ("%g %g %g %d\n", s, sum (abs (e)), x(end), numel (c));
