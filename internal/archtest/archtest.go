// Package archtest holds the rules of this repository as data, each with its
// reason, and checks the tree against them.
//
// The rules are in rules.go (D1 to D15). They are checked in two ways: by the
// import graph that one call of go list answers, and by a pass over the syntax
// of every file, whatever its build tags. A test of this package runs the
// checks on the real tree, so `go test ./internal/archtest` answers with the
// rule, the file and the reason whenever a boundary is crossed. D14 keeps words
// that were replaced out of names and texts; its list is in words_data.go. D15
// bounds the length of lines and files, and the methods of a type.
//
// Files ending in _test.go may import what they need: a test may use the real
// adapter of any port. Only D11 (nobody imports cmd) binds them too.
package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"sort"
	"strings"
)

// Tree is the program as the checks see it.
type Tree struct {
	Module   string    // the module's path
	Packages []Package // the module's own packages
	// Modules are the paths of the modules that go.mod names.
	Modules []string
	// Std reports whether a path is a package of the standard library.
	Std func(path string) bool
}

// Package is one package of the module.
type Package struct {
	Path  string // relative to the module, "." for its root
	Name  string
	Files []File
	Deps  []string // import paths of everything it needs, directly or not
}

// File is one parsed source file.
type File struct {
	Name   string // relative to the module's root
	Test   bool
	Fset   *token.FileSet
	Syntax *ast.File
	// LineLengths are the lengths of its lines in characters, without their ends.
	LineLengths []int
}

// Violation is one broken rule.
type Violation struct {
	Rule string // D1 to D15
	File string // file and line, or a package's folder
	What string
	Why  string
}

// String renders the violation in one line: rule, file, fault, reason.
func (v Violation) String() string {
	return fmt.Sprintf("%s %s: %s (why: %s)", v.Rule, v.File, v.What, v.Why)
}

// Check returns every violation of the rules, sorted by file.
func Check(t Tree, r Rules) []Violation {
	var all []Violation
	for _, check := range []func(Tree, Rules) []Violation{
		checkBoundaries, checkBans, checkClosures, checkCalls, checkCore, checkComments, checkNames, checkWords,
		checkSizes,
	} {
		all = append(all, check(t, r)...)
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].File < all[j].File })
	return all
}

// matchesPattern reports whether path is named by pattern: "a/b" names itself, "a/..."
// names a and everything below, "...test" names every path with that ending.
func matchesPattern(pattern, path string) bool {
	switch {
	case pattern == "...":
		return true
	case strings.HasPrefix(pattern, "..."):
		return strings.HasSuffix(path, pattern[3:])
	case strings.HasSuffix(pattern, "/..."):
		root := basePath(pattern)
		return path == root || strings.HasPrefix(path, root+"/")
	}
	return pattern == path
}

func matchAny(patterns []string, path string) bool {
	for _, p := range patterns {
		if matchesPattern(p, path) {
			return true
		}
	}
	return false
}

// basePath is the path that a pattern is rooted in.
func basePath(pattern string) string { return strings.TrimSuffix(pattern, "/...") }

// ownPath turns an import path into a path relative to the module.
func (t Tree) ownPath(path string) (string, bool) {
	if path == t.Module {
		return ".", true
	}
	return strings.CutPrefix(path, t.Module+"/")
}

// positionOf is the file and line of a position.
func (f File) positionOf(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.Name, f.Fset.Position(pos).Line)
}
