package archtest

import (
	"go/ast"
	"strconv"
	"strings"
)

// forEachShippedImport calls visit for every import of every file that is not a test.
func forEachShippedImport(t Tree, visit func(Package, File, *ast.ImportSpec, string)) {
	for _, p := range t.Packages {
		for _, f := range p.Files {
			if !f.Test {
				eachImport(f, func(spec *ast.ImportSpec, path string) { visit(p, f, spec, path) })
			}
		}
	}
}

func eachImport(f File, visit func(*ast.ImportSpec, string)) {
	for _, spec := range f.Syntax.Imports {
		if path, err := strconv.Unquote(spec.Path.Value); err == nil {
			visit(spec, path)
		}
	}
}

func boundaryOf(r Rules, path string) (Boundary, bool) {
	for _, b := range r.Boundaries {
		if matchAny(b.Of, path) {
			return b, true
		}
	}
	return Boundary{}, false
}

func checkBoundaries(t Tree, r Rules) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		if _, ok := boundaryOf(r, p.Path); !ok {
			found = append(found, Violation{"D13", p.Path, "no boundary names this package",
				"a package without a rule is a hole in the house: give it one in internal/archtest"})
		}
	}
	forEachShippedImport(t, func(p Package, f File, spec *ast.ImportSpec, path string) {
		b, ok := boundaryOf(r, p.Path)
		if ok && !b.allowsImport(t, p.Path, path) {
			found = append(found, Violation{b.Rule, f.positionOf(spec.Pos()), p.Path + " imports " + path, b.Why})
		}
	})
	return append(found, checkCmd(t)...)
}

// allowsImport reports whether the package from may import path.
func (b Boundary) allowsImport(t Tree, from, path string) bool {
	if own, ok := t.ownPath(path); ok {
		return matchAny(b.Own, own) || (b.Folder && matchesPattern(topFolder(from)+"/...", own))
	}
	if path == "C" || t.Std(path) {
		return b.Std == nil || matchAny(b.Std, path)
	}
	return !b.StdOnly
}

// topFolder is the first two elements of a path.
func topFolder(path string) string {
	parts := strings.SplitN(path, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

// checkCmd is D11, the one import rule that binds tests too: a binary's folder
// is imported from itself alone.
func checkCmd(t Tree) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		for _, f := range p.Files {
			eachImport(f, func(spec *ast.ImportSpec, path string) {
				own, ok := t.ownPath(path)
				if ok && strings.HasPrefix(own, "cmd/") && commandFolder(own) != commandFolder(p.Path) {
					found = append(found, Violation{"D11", f.positionOf(spec.Pos()), p.Path + " imports " + own,
						"composition roots pick adapters; whatever needs one belongs in a package of its own"})
				}
			})
		}
	}
	return found
}

// commandFolder is the folder of the command that path belongs to, or "".
func commandFolder(path string) string {
	rest, ok := strings.CutPrefix(path, "cmd/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return name
}

func checkBans(t Tree, r Rules) []Violation {
	var found []Violation
	forEachShippedImport(t, func(p Package, f File, spec *ast.ImportSpec, path string) {
		for _, b := range r.Bans {
			if matchAny(b.In, p.Path) && !matchAny(b.Except, p.Path) && matchAny(b.Imports, path) {
				found = append(found, Violation{b.Rule, f.positionOf(spec.Pos()), p.Path + " imports " + path, b.Why})
			}
		}
	})
	return found
}

func checkClosures(t Tree, r Rules) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		for _, c := range r.Closures {
			if !matchAny(c.Of, p.Path) || p.Name == "" {
				continue
			}
			for _, dep := range p.Deps {
				own, ours := t.ownPath(dep)
				if (ours && matchAny(c.Own, own)) || matchAny(c.Imports, dep) {
					found = append(found, Violation{c.Rule, p.Path, "needs " + dep + ", directly or through others",
						c.Why})
				}
			}
		}
	}
	return found
}
