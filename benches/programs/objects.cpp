// Objects, virtual calls, strings and maps: `objects ROUNDS`.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
    virtual const char *name() const = 0;
};

struct Circle final : Shape {
    explicit Circle(double radius) : radius(radius) {}
    double area() const override { return 3.14159 * radius * radius; }
    const char *name() const override { return "circle"; }
    double radius;
};

struct Rectangle final : Shape {
    Rectangle(double width, double height) : width(width), height(height) {}
    double area() const override { return width * height; }
    const char *name() const override { return width == height ? "square" : "rectangle"; }
    double width, height;
};

struct Polygon final : Shape {
    explicit Polygon(std::vector<double> sides) : sides(std::move(sides)) {}
    double area() const override {
        double sum = 0;
        for (double side : sides) sum += side > 5 ? side * 0.5 : side;
        return sum;
    }
    const char *name() const override { return sides.size() == 5 ? "pentagon" : "polygon"; }
    std::vector<double> sides;
};

uint64_t state = 88172645463325252u;

uint64_t next() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

std::unique_ptr<Shape> any_shape() {
    switch (next() % 3) {
    case 0: return std::make_unique<Circle>(next() % 10);
    case 1: return std::make_unique<Rectangle>(next() % 10, next() % 10);
    default: {
        std::vector<double> sides(3 + next() % 5);
        for (double &side : sides) side = next() % 10;
        return std::make_unique<Polygon>(std::move(sides));
    }
    }
}

} // namespace

int main(int count, char **arguments) {
    long rounds = count > 1 ? std::atol(arguments[1]) : 100;
    std::unordered_map<std::string, double> areas;
    std::map<std::string, int> words;
    for (long round = 0; round < rounds; round++) {
        std::vector<std::unique_ptr<Shape>> shapes;
        for (int i = 0; i < 2000; i++) shapes.push_back(any_shape());
        std::sort(shapes.begin(), shapes.end(), [](const auto &a, const auto &b) { return a->area() < b->area(); });
        for (const auto &shape : shapes) areas[shape->name()] += shape->area();
        for (int i = 0; i < 1000; i++) words["word" + std::to_string(next() % 5000)]++;
    }
    double sum = 0;
    for (const auto &[name, area] : areas) sum += area;
    std::printf("%.0f %zu\n", sum, words.size());
}
