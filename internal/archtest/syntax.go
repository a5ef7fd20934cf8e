package archtest

import (
	"go/ast"
	"path"
	"strings"
)

// checkCalls finds names of a package that a CallBan forbids. Test files are
// free: they stand outside the program.
func checkCalls(t Tree, r Rules) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		for _, ban := range r.Calls {
			if !matchAny(ban.In, p.Path) || matchAny(ban.Except, p.Path) || p.Path == ban.Path {
				continue
			}
			for _, f := range p.Files {
				if !f.Test {
					found = append(found, forbiddenNames(t, f, ban)...)
				}
			}
		}
	}
	return found
}

func forbiddenNames(t Tree, f File, ban CallBan) []Violation {
	local := localName(t, f, ban.Path)
	if local == "" {
		return nil
	}
	var found []Violation
	report := func(n ast.Expr) {
		if name := selectedName(n, local); matchAny(ban.Names, name) {
			found = append(found, Violation{ban.Rule, f.positionOf(n.Pos()), "uses " + path.Base(ban.Path) + "." + name,
				ban.Why})
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.StarExpr: // a pointer to a client is a parameter, not a client built
			return selectedName(n.X, local) == ""
		case *ast.SelectorExpr:
			report(n)
		}
		return true
	})
	return found
}

// selectedName returns name if n is pkg.name.
func selectedName(n ast.Expr, pkg string) string {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); !ok || x.Name != pkg {
		return ""
	}
	return sel.Sel.Name
}

// localName is the name by which the file knows the package at importPath, or
// "" if it does not import it.
func localName(t Tree, f File, importPath string) string {
	name := ""
	eachImport(f, func(spec *ast.ImportSpec, p string) {
		if own, ok := t.ownPath(p); ok {
			p = own
		}
		if p != importPath {
			return
		}
		name = path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
	})
	return name
}

// checkComments is D13: one package comment for each package, in the form that
// documentation tools expect, and no name that says nothing.
func checkComments(t Tree, r Rules) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		if matchAny(r.Names, p.Name) || matchAny(r.Names, path.Base(p.Path)) {
			found = append(found, Violation{"D13", p.Path, "is called " + p.Name,
				"a package is named by what it gives; such a name gathers whatever has no place"})
		}
		if what := commentFault(p); what != "" {
			found = append(found, Violation{"D13", p.Path, what,
				"a reader must find in one place what a package is for"})
		}
	}
	return found
}

// commentFault says what is wrong with a package's comment, "" if nothing is.
// A package of tests alone carries its comment in one of them.
func commentFault(p Package) string {
	var shippedDocs, testDocs []string
	code := false
	for _, f := range p.Files {
		code = code || !f.Test
		switch {
		case f.Syntax.Doc == nil:
		case f.Test:
			testDocs = append(testDocs, f.Syntax.Doc.Text())
		default:
			shippedDocs = append(shippedDocs, f.Syntax.Doc.Text())
		}
	}
	docs := shippedDocs
	if !code {
		docs = testDocs
	}
	switch {
	case len(docs) == 0:
		return "has no package comment"
	case len(docs) > 1:
		return "has more than one package comment"
	case code && p.Name != "main" && !strings.HasPrefix(docs[0], "Package "+p.Name+" "):
		return "its comment does not begin with \"Package " + p.Name + "\""
	}
	return ""
}
