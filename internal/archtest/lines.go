package archtest

import (
	"fmt"
	"go/ast"
)

// mostColumns is how long a line may be, counted in characters without its end.
const mostColumns = 120

const (
	whyLines = "two files fit side by side on a screen: break the line, join the parts of a string with +, or move " +
		"test data below testdata"
	whyLongFiles = "an exception that excuses nothing hides the next long line: delete it from longFiles"
)

// checkLines is D15: no line is longer than mostColumns, but for generated files and those that the rules except.
func checkLines(t Tree, r Rules) []Violation {
	var found []Violation
	excused := map[string]bool{}
	for _, p := range t.Packages {
		for _, f := range p.Files {
			if _, excepted := r.LongFiles[f.Name]; excepted {
				excused[f.Name] = len(longLines(f)) > 0
				continue
			}
			found = append(found, longLines(f)...)
		}
	}
	for name := range r.LongFiles {
		if !excused[name] {
			found = append(found, Violation{"D15", name, "is excepted and has no long line", whyLongFiles})
		}
	}
	return found
}

// longLines finds the lines of a file that are too long. A generator's lines are its own.
func longLines(f File) []Violation {
	if ast.IsGenerated(f.Syntax) {
		return nil
	}
	var found []Violation
	for i, length := range f.LineLengths {
		if length > mostColumns {
			found = append(found, Violation{"D15", fmt.Sprintf("%s:%d", f.Name, i+1),
				fmt.Sprintf("has %d columns of at most %d", length, mostColumns), whyLines})
		}
	}
	return found
}
