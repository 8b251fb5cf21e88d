package main

import (
	"regexp"
	"strings"
	"sync"
	"testing"
)

// function has the parts of an assembly function's text that the rules below check.
type function struct {
	name  string
	lines []string
}

var (
	register = regexp.MustCompile(`\b([XYZ])([0-9]+)\b`)
	memory   = regexp.MustCompile(`\((SP|[A-D]X|[SD]I|BP|R[0-9]+|SB)\)`)
	// generated is made once for all tests.
	generated = sync.OnceValues(generate)
)

// functions parses the generated text for x86-64.
func functions(t *testing.T, file string) (all []function) {
	t.Helper()
	files, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(files[file])) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "TEXT ·"); ok {
			name, _, _ = strings.Cut(name, "(SB)")
			all = append(all, function{name: name})
			continue
		}
		if len(all) == 0 || line == "" || strings.HasSuffix(line, ":") || strings.HasPrefix(line, "//") {
			continue
		}
		f := &all[len(all)-1]
		if strings.HasPrefix(line, "DATA") || strings.HasPrefix(line, "GLOBL") {
			continue
		}
		f.lines = append(f.lines, line)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no functions", file)
	}
	return all
}

func (f function) uses(class string) bool {
	for _, line := range f.lines {
		for _, m := range register.FindAllStringSubmatch(line, -1) {
			if m[1] == class {
				return true
			}
		}
	}
	return false
}

var x86Files = []string{"avx512_amd64.s", "avx2_amd64.s", "sse41_amd64.s"}

// No kernel calls anything. A kernel that has used a wide register clears the upper parts before it
// returns: otherwise they would slow down all later SSE code.
func TestKernelsCallNothingAndLeaveNoUpperParts(t *testing.T) {
	for _, file := range x86Files {
		for _, f := range functions(t, file) {
			wide := f.uses("Y") || f.uses("Z")
			for i, line := range f.lines {
				if strings.HasPrefix(line, "CALL") {
					t.Errorf("%s calls: %s", f.name, line)
				}
				// hash1 uses one wide register, for the copy of a last block, and clears it there.
				if line == "RET" && wide && !strings.HasPrefix(f.name, "hash1") && f.lines[i-1] != "VZEROUPPER" {
					t.Errorf("%s returns with upper parts in use", f.name)
				}
			}
			if wide && !strings.Contains(strings.Join(f.lines, "\n"), "VZEROUPPER") {
				t.Errorf("%s never clears the upper parts", f.name)
			}
		}
	}
}

// A kernel has only instructions of its instruction set: none of AVX-512 in the AVX2 file, and none
// of AVX in the SSE4.1 file.
func TestInstructionSets(t *testing.T) {
	// Mnemonics only of AVX-512 that the generator knows: masks, rotations, three-way logic, sized
	// moves.
	evex := regexp.MustCompile(`^(K[A-Z]|VPROR|VPTERNLOG|VMOVDQ[UA](8|32|64)|VPXOR[DQ]|VPERM[IT]2|VINSERTI(32|64)|VEXTRACTI(32|64)|VSHUFI|VBROADCASTI(32|64)|VPCMPU)`)
	for _, f := range functions(t, "avx2_amd64.s") {
		for _, line := range f.lines {
			for _, m := range register.FindAllStringSubmatch(line, -1) {
				if m[1] == "Z" || len(m[2]) == 2 && m[2] > "15" {
					t.Errorf("%s: a register of AVX-512: %s", f.name, line)
				}
			}
			if evex.MatchString(line) {
				t.Errorf("%s: an instruction of AVX-512: %s", f.name, line)
			}
		}
	}
	for _, f := range functions(t, "sse41_amd64.s") {
		for _, line := range f.lines {
			if strings.HasPrefix(line, "V") || f.uses("Y") {
				t.Errorf("%s: an instruction of AVX: %s", f.name, line)
			}
		}
	}
}

// budgets are the number of instructions of each kernel, and how many of them access memory: for a
// message in memory, or a spilled register. If a change moves them, measure it and record the new
// numbers here.
var budgets = map[string][2]int{
	"hash1AVX512":          {407, 121},
	"step2AVX512":          {331, 22},
	"parents2AVX512":       {305, 15},
	"hash1ShiftsAVX512":    {519, 121},
	"hash1ScalarAVX512":    {989, 270},
	"step2ShiftsAVX512":    {443, 22},
	"parents2ShiftsAVX512": {417, 15},
	"step4AVX512":          {349, 40},
	"parents4AVX512":       {317, 27},
	"step8AVX512":          {973, 89},
	"step16AVX512":         {1047, 131},
	"stepWoven16AVX512":    {1614, 675},
	"span16AVX512":         {1489, 586},
	"merge16AVX512":        {869, 47},
	"ungroup16AVX512":      {62, 26},
	"root16AVX512":         {929, 54},
	"cpuid":                {8, 0},
	"hash1AVX2":            {532, 147},
	"step2AVX2":            {409, 81},
	"step4AVX2":            {861, 294},
	"parents2AVX2":         {383, 74},
	"parents4AVX2":         {828, 280},
	"step8AVX2":            {1270, 411},
	"span8AVX2":            {1202, 365},
	"merge8AVX2":           {1148, 335},
	"ungroup8AVX2":         {44, 24},
	"root8AVX2":            {1210, 393},
	"hash1SSE41":           {459, 78},
	"step4SSE41":           {1440, 363},
	"span4SSE41":           {1367, 345},
	"merge4SSE41":          {1300, 335},
	"ungroup4SSE41":        {51, 16},
	"root4SSE41":           {1403, 377},
}

func TestBudgets(t *testing.T) {
	seen := 0
	for _, file := range x86Files {
		for _, f := range functions(t, file) {
			inMemory := 0
			for _, line := range f.lines {
				if memory.MatchString(line) && !strings.HasPrefix(line, "LEAQ") {
					inMemory++
				}
			}
			if got, want := [2]int{len(f.lines), inMemory}, budgets[f.name]; got != want {
				t.Errorf("%q: {%d, %d}, recorded {%d, %d}", f.name, got[0], got[1], want[0], want[1])
			}
			seen++
		}
	}
	if seen != len(budgets) {
		t.Errorf("%d kernels, %d budgets", seen, len(budgets))
	}
}
