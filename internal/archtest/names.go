package archtest

import (
	"slices"
	"strings"
)

const whyNames = "a rule that names nothing guards nothing: fix the path, or keep Planned true"

// checkNames looks for ghosts: paths that rules name and that do not exist. A
// package or module in Planned may be missing, and must leave the list when it
// comes.
func checkNames(t Tree, r Rules) []Violation {
	var found []Violation
	report := func(what string) {
		found = append(found, Violation{"D13", "internal/archtest", what, whyNames})
	}
	named := namedPaths(t, r)
	for _, path := range named {
		if !pathExists(t, path) && !slices.Contains(r.Planned, path) {
			report("a rule names " + path + ", which does not exist")
		}
	}
	for _, path := range r.Planned {
		switch {
		case pathExists(t, path):
			report(path + " exists: take it out of planned")
		case !slices.Contains(named, path):
			report(path + " is planned, but no rule names it")
		}
	}
	return found
}

// namedPaths returns every path that a rule names, once, without wildcards.
func namedPaths(t Tree, r Rules) []string {
	var all []string
	add := func(patterns ...string) {
		for _, p := range patterns {
			if p = basePath(p); strings.HasPrefix(p, "...") {
				continue
			}
			if own, ok := t.ownPath(p); ok {
				p = own
			}
			all = append(all, p)
		}
	}
	for _, b := range r.Boundaries {
		add(b.Of...)
		add(b.Own...)
		add(b.Std...)
	}
	for _, b := range r.Bans {
		add(b.In...)
		add(b.Except...)
		add(b.Imports...)
	}
	for _, c := range r.Closures {
		add(c.Of...)
		add(c.Own...)
		add(c.Imports...)
	}
	for _, c := range r.Calls {
		add(c.Path)
		add(c.In...)
		add(c.Except...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pathExists reports whether path is a package of ours, a folder of some, a package
// of the standard library, or inside a module that go.mod names.
func pathExists(t Tree, path string) bool {
	for _, p := range t.Packages {
		if p.Path == path || strings.HasPrefix(p.Path, path+"/") {
			return true
		}
	}
	for _, m := range t.Modules {
		if path == m || strings.HasPrefix(path, m+"/") {
			return true
		}
	}
	return t.Std(path)
}
