<?php
// Objects, arrays, strings, regular expressions, hashing and sorting.
class Item {
    public function __construct(public string $name, public int $price, public array $tags) {}
    public function score(int $day): float { return ($this->price * 31 + $day) % 97 / (count($this->tags) + 1); }
}
$state = 1;
function next_number(int $limit): int {
    global $state;
    $state = ($state * 1103515245 + 12345) & 0x7fffffff;
    return ($state >> 8) % $limit;
}
$total = 0.0;
$digest = '';
for ($day = 0; $day < (int)$argv[1]; $day++) {
    $items = [];
    for ($i = 0; $i < 500; $i++) {
        $tags = array_map(fn($n) => 'tag' . next_number($n), range(1, 1 + next_number(6)));
        $items[] = new Item('item-' . next_number(1000), next_number(5000), $tags);
    }
    usort($items, fn($a, $b) => $a->score($day) <=> $b->score($day) ?: strcmp($a->name, $b->name));
    $by_tag = [];
    foreach ($items as $item)
        foreach (array_unique($item->tags) as $tag)
            $by_tag[$tag] = ($by_tag[$tag] ?? 0) + $item->price;
    ksort($by_tag);
    foreach ($items as $item)
        if (preg_match('/^item-(\d*[02468])$/', $item->name, $found)) $total += sqrt((float)$found[1]);
    $digest = md5($digest . implode(',', array_keys($by_tag)) . json_encode(array_slice($items, 0, 20)));
}
printf("%s %.3f\n", $digest, $total);
