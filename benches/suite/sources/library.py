"""Objects, dictionaries, comprehensions, generators, strings, JSON and regular expressions: library.py ROUNDS."""

import collections
import json
import re
import sys


class Book:
    def __init__(self, number, state):
        self.number, self.pages = number, state % 900 + 100
        self.words = [f"w{(state >> shift) % 211}" for shift in range(12)]

    def score(self, other):
        return (self.pages * 31 + other.pages) % 1009 + len(set(self.words) & set(other.words))


def numbers(state):
    while True:
        state = (state * 1103515245 + 12345) % 2147483648
        yield state >> 4


def sieve(limit):
    marked = [True] * limit
    for number in range(2, int(limit**0.5) + 1):
        if marked[number]:
            for multiple in range(number * number, limit, number):
                marked[multiple] = False
    return sum(marked) - 2


def main():
    source, index, total = numbers(1), collections.Counter(), 0
    for round_number in range(int(sys.argv[1])):
        books = [Book(number, next(source)) for number in range(400)]
        total += sum(one.score(other) for one, other in zip(books, books[1:]))
        index.update(word for book in books for word in book.words)
        text = json.dumps([vars(book) for book in sorted(books, key=lambda book: (book.pages, book.number))[:100]])
        total += len(re.findall(r'"w(\d)\1\d?"', text)) + sum(len(row["words"]) for row in json.loads(text))
        total += sieve(3000 + round_number % 7)
    print(total, index.most_common(3))


main()
