// Maps, regular expressions, streams, exceptions, virtual calls and sorting of the C++ library.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square : Shape {
    double side;
    explicit Square(double s) : side(s) {}
    double area() const override { return side * side; }
};
struct Circle : Shape {
    double radius;
    explicit Circle(double r) : radius(r) {}
    double area() const override { return 3.14159 * radius * radius; }
};

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? std::atol(argv[1]) : 1;
    std::map<std::string, int> words;
    std::unordered_map<int, std::string> names;
    std::regex date(R"((\d{4})-(\d\d)-(\d\d)|([a-z]+)=([^;]*);)");
    double total = 0;
    for (long r = 0; r < rounds; r++) {
        std::ostringstream out;
        out << "2024-" << 10 + r % 3 << "-" << 10 + r % 20 << " key=" << r << "; other=" << r / 7.0 << ";";
        std::string text = out.str();
        for (std::sregex_iterator at(text.begin(), text.end(), date), end; at != end; ++at) words[at->str()]++;
        names[r % 1000] += text.substr(0, 5);
        if (names[r % 1000].size() > 100) names.erase(r % 1000);
        if (words.size() > 2000) words.clear();
        std::vector<std::unique_ptr<Shape>> shapes;
        for (int i = 0; i < 10; i++)
            if ((r + i) % 3) shapes.push_back(std::make_unique<Square>(i + r % 5));
            else shapes.push_back(std::make_unique<Circle>(i * 0.5));
        std::sort(shapes.begin(), shapes.end(), [](auto &a, auto &b) { return a->area() < b->area(); });
        total += shapes[4]->area();
        try {
            if (r % 50 == 0) throw std::runtime_error(text);
        } catch (const std::exception &error) {
            total += std::string(error.what()).size();
        }
        std::istringstream in(text);
        std::string first;
        in >> first;
        total += first.size();
    }
    std::cout << words.size() << " " << total << std::endl;
}
