// Maps, slices, interfaces, strings, sorting, JSON, hashing and compression in Go: inventory ROUNDS.
package main

import (
	"bytes"
	"compress/flate"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
)

type shape interface{ area() float64 }
type circle struct{ Radius float64 }
type rectangle struct{ Width, Height float64 }

func (c circle) area() float64    { return math.Pi * c.Radius * c.Radius }
func (r rectangle) area() float64 { return r.Width * r.Height }

type item struct {
	Name   string
	Pieces int
	Tags   []string
}

type numbers uint32

func (n *numbers) next(limit int) int {
	*n = *n*1664525 + 1013904223
	return int(*n>>8) % limit
}

func main() {
	rounds, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	source := numbers(1)
	total, area := 0, 0.0
	digest := md5.New()
	for round := 0; round < rounds; round++ {
		items := make([]item, 200)
		byTag := map[string]int{}
		for i := range items {
			tags := make([]string, 1+source.next(5))
			for t := range tags {
				tags[t] = "tag" + strconv.Itoa(source.next(50))
			}
			items[i] = item{fmt.Sprintf("item-%04d", source.next(10000)), source.next(100), tags}
			for _, tag := range tags {
				byTag[tag] += items[i].Pieces
			}
		}
		sort.Slice(items, func(a, b int) bool { return items[a].Name < items[b].Name })
		text, _ := json.Marshal(items[:50])
		var back []item
		if err := json.Unmarshal(text, &back); err != nil {
			panic(err)
		}
		digest.Write(text)
		var packed bytes.Buffer
		writer, _ := flate.NewWriter(&packed, 6)
		writer.Write(text)
		writer.Close()
		total += packed.Len() + len(byTag) + strings.Count(string(text), "tag1") + len(strings.Fields(strings.ReplaceAll(back[0].Name, "-", " ")))
		shapes := []shape{}
		for i := 0; i < 500; i++ {
			if source.next(2) == 0 {
				shapes = append(shapes, circle{float64(source.next(10))})
			} else {
				shapes = append(shapes, rectangle{float64(i), float64(round % 10)})
			}
		}
		for _, s := range shapes {
			area += math.Sqrt(s.area())
		}
	}
	fmt.Printf("%d %.3f %x\n", total, area, digest.Sum(nil))
}
