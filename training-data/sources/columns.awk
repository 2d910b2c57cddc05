# Fields, associative arrays, regular expressions, arithmetic.
BEGIN { FS = "," }
{
    sum[$2] += $3
    if (longest[$5] < length($2 $1)) longest[$5] = length($2 $1)
    if ($4 ~ /^[1-5].*7$/) hits++
    total += sqrt($4)
    sub(/[aeiou]+/, "", $2)
    stems[$2]++
}
END {
    for (word in sum) print word, sum[word], longest[word]
    print hits, total, length(stems)
}
