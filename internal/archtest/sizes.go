package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
)

// What D15 allows at most.
const (
	mostColumns = 120 // of a line: characters without its end
	mostLines   = 400 // of a file
	mostMethods = 40  // of a type
)

const (
	whyLines = "two files fit side by side on a screen: break the line, join the parts of a string with +, or move " +
		"test data below testdata"
	whyFiles   = "a file that long has more than one subject: give each a file"
	whyMethods = "a type with so many methods does the work of several: make functions or types of some"
)

// checkSizes is D15: lines, files and types are not too large. Generated files are
// excepted, and the types that the rules name.
func checkSizes(t Tree, r Rules) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		methods := map[string]int{}
		for _, f := range p.Files {
			if ast.IsGenerated(f.Syntax) {
				continue
			}
			found = append(found, longLines(f)...)
			if n := countLines(f); n > mostLines {
				found = append(found, Violation{"D15", f.Name, fmt.Sprintf("has %d lines of at most %d", n, mostLines),
					whyFiles})
			}
			if !f.Test {
				countMethods(f, methods)
			}
		}
		found = append(found, largeTypes(p, methods, r)...)
	}
	return found
}

// countLines counts the lines of a file, of which the last one ends with a break.
func countLines(f File) int {
	n := len(f.LineLengths)
	if n > 0 && f.LineLengths[n-1] == 0 {
		n--
	}
	return n
}

// longLines finds the lines of a file that are too long.
func longLines(f File) []Violation {
	var found []Violation
	for i, length := range f.LineLengths {
		if length > mostColumns {
			found = append(found, Violation{"D15", fmt.Sprintf("%s:%d", f.Name, i+1),
				fmt.Sprintf("has %d columns of at most %d", length, mostColumns), whyLines})
		}
	}
	return found
}

// countMethods adds the methods of a file to those of their types.
func countMethods(f File, methods map[string]int) {
	for _, d := range f.Syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
			methods[receiverName(fn.Recv.List[0].Type)]++
		}
	}
}

// receiverName is the name of a receiver's type, without its star and its parameters.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

func largeTypes(p Package, methods map[string]int, r Rules) []Violation {
	var found []Violation
	for name, n := range methods {
		full := path.Join(p.Path, name)
		if n > mostMethods && !slices.Contains(r.LargeTypes, full) {
			found = append(found, Violation{"D15", p.Path, fmt.Sprintf("type %s has %d methods of at most %d", name, n,
				mostMethods), whyMethods})
		}
	}
	return found
}
