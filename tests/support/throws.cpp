#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

static int parse(const std::string &word, int number) {
    if (number * 7919 % 10 < 3) throw std::runtime_error(word);
    return word.size() + number;
}

__attribute__((noinline)) static int guarded(std::map<int, int> &seen, int number) {
    try {
        std::string word(number % 40, 'x');
        int value = parse(word, number);
        seen[value % 5000]++;
        return value;
    } catch (const std::exception &error) {
        seen[-1]++;
        return error.what()[0];
    }
}

int main(int, char **arguments) {
    std::map<int, int> seen;
    long sum = 0;
    for (int number = 0; number < atoi(arguments[1]); number++) sum += guarded(seen, number);
    std::printf("%ld %zu\n", sum, seen.size());
}
