package spec

import (
	"maps"
	"slices"
	"strings"
)

// Class is an instance class. Its limits are enforced.
type Class struct {
	Name   string
	CPUs   int
	Memory int64 // bytes
}

// LookupClass finds an instance class by its name.
func LookupClass(name string) (Class, bool) {
	c, ok := classes[name]
	return c, ok
}

// Classes lists all instance classes, by name.
func Classes() []Class {
	return slices.SortedFunc(maps.Values(classes), func(a, b Class) int { return strings.Compare(a.Name, b.Name) })
}

type size struct {
	name string
	cpus int
	gib  float64
}

// CPUs and memory are from the RDS user guide ("Hardware specifications for DB instance classes").
// Those of the oldest classes are from its editions of 2014.
var families = map[string][]size{
	"t2":  burstable[:5],
	"t3":  burstable,
	"t4g": burstable,
	"m1":  {{"small", 1, 1.7}, {"medium", 1, 3.75}, {"large", 2, 7.5}, {"xlarge", 4, 15}},
	"m2":  {{"xlarge", 2, 17.1}, {"2xlarge", 4, 34.2}, {"4xlarge", 8, 68.4}},
	"m3":  {{"medium", 1, 3.75}, {"large", 2, 7.5}, {"xlarge", 4, 15}, {"2xlarge", 8, 30}},
	"cr1": {{"8xlarge", 32, 244}},
	"m4":  scaled(4, "large", "xlarge", "2xlarge", "4xlarge", "16xlarge"),
	"m5":  scaled(4, upTo24...),
	"m6g": scaled(4, upTo16...),
	"m7g": scaled(4, upTo16...),
	"r4":  {{"large", 2, 15.25}, {"xlarge", 4, 30.5}, {"2xlarge", 8, 61}, {"4xlarge", 16, 122}, {"8xlarge", 32, 244}, {"16xlarge", 64, 488}},
	"r5":  scaled(8, upTo24...),
	"r6g": scaled(8, upTo16...),
	"r7g": scaled(8, upTo16...),
}

var burstable = []size{
	{"micro", 2, 1}, {"small", 2, 2}, {"medium", 2, 4}, {"large", 2, 8}, {"xlarge", 4, 16}, {"2xlarge", 8, 32},
}

var (
	upTo16 = []string{"large", "xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge", "16xlarge"}
	upTo24 = append(slices.Clone(upTo16), "24xlarge")
)

var cpusOf = map[string]int{
	"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32, "12xlarge": 48, "16xlarge": 64, "24xlarge": 96,
}

// scaled makes the sizes of a family with a fixed number of GiB for each CPU.
func scaled(gibPerCPU float64, names ...string) []size {
	sizes := make([]size, len(names))
	for i, name := range names {
		sizes[i] = size{name, cpusOf[name], gibPerCPU * float64(cpusOf[name])}
	}
	return sizes
}

var classes = buildClasses()

func buildClasses() map[string]Class {
	all := map[string]Class{}
	for family, sizes := range families {
		for _, s := range sizes {
			name := "db." + family + "." + s.name
			all[name] = Class{Name: name, CPUs: s.cpus, Memory: int64(s.gib * (1 << 30))}
		}
	}
	// The smallest class of 2014 does not fit the later sizes of its family.
	all["db.t1.micro"] = Class{Name: "db.t1.micro", CPUs: 1, Memory: 613 << 20}
	return all
}
