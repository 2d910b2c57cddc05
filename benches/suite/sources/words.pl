# Words counted, rewritten and sorted: hashes, regular expressions, strings.
use strict;
my ($rounds, $file) = @ARGV;
my (%count, %stem, $swapped, $length);
for my $round (1 .. $rounds) {
    open my $in, '<', $file or die "$file: $!";
    while (my $line = <$in>) {
        chomp $line;
        my @words = split ' ', $line;
        $count{$_}++ for @words;
        $swapped++ if $line =~ s/\b(\w+)ing? (\w+)\b/$2 $1/g;
        $stem{$1} .= substr $2, 0, 1 if $line =~ /\b([aeiou]\w*?)(t\w+)/;
        $length += length join '-', map { ucfirst } grep { /^[b-m]/ } @words;
    }
    my @top = (sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count)[0 .. 9];
    print "$round @top\n";
}
print scalar(keys %stem), " $swapped $length\n";
