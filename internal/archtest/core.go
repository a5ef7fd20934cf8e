package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

const (
	whyGo   = "core starts nothing: a decision is over when its function returns"
	whyVars = "state that outlives a call would make the same inputs decide differently; errors and tables that " +
		"nobody writes are welcome"
)

// checkCore is the part of D1 that imports do not show: no goroutine, and no
// package variable but errors, tables and embedded files, which are never written.
func checkCore(t Tree, _ Rules) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		if !matchesPattern("core/...", p.Path) {
			continue
		}
		vars := map[string]bool{}
		for _, f := range p.Files {
			if !f.Test {
				found = append(found, checkVars(f, vars)...)
			}
		}
		for _, f := range p.Files {
			if !f.Test {
				found = append(found, checkBodies(f, vars)...)
			}
		}
	}
	return found
}

// checkVars reports package variables that are neither errors nor tables, and
// gathers the names of all into vars.
func checkVars(f File, vars map[string]bool) []Violation {
	var found []Violation
	for _, decl := range f.Syntax.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.VAR {
			continue
		}
		for _, s := range gen.Specs {
			spec := s.(*ast.ValueSpec)
			for i, name := range spec.Names {
				if name.Name == "_" {
					continue
				}
				vars[name.Name] = true
				if !isEmbedded(gen) && (i >= len(spec.Values) || !constantLike(spec.Values[i])) {
					found = append(found, Violation{"D1", f.positionOf(name.Pos()), "package variable " + name.Name,
						whyVars})
				}
			}
		}
	}
	return found
}

// isEmbedded reports whether the declaration is a file that the compiler put into
// the program: a table, in a form of its own.
func isEmbedded(gen *ast.GenDecl) bool {
	return gen.Doc != nil && slices.ContainsFunc(gen.Doc.List,
		func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// constantLike reports whether e builds an error or a table.
func constantLike(e ast.Expr) bool {
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		e = u.X
	}
	switch e := e.(type) {
	case *ast.CallExpr:
		return selectedName(e.Fun, "errors") == "New"
	case *ast.CompositeLit:
		return tableType(e.Type)
	}
	return false
}

func tableType(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ArrayType, *ast.MapType:
		return true
	case *ast.IndexListExpr:
		return tableType(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name == "Table"
	case *ast.Ident:
		return e.Name == "Table" || strings.HasSuffix(e.Name, "Error")
	}
	return false
}

// checkBodies reports goroutines, and writes to the package variables by name:
// a local that shadows a table's name counts too, and deserves another name.
func checkBodies(f File, vars map[string]bool) []Violation {
	var found []Violation
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			found = append(found, Violation{"D1", f.positionOf(g.Pos()), "starts a goroutine", whyGo})
		}
		for _, target := range writtenTo(n) {
			if name := rootName(target); vars[name] {
				found = append(found, Violation{"D1", f.positionOf(target.Pos()), "writes package variable " + name,
					whyVars})
			}
		}
		return true
	})
	return found
}

// writtenTo returns the expressions that a node writes to.
func writtenTo(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.CallExpr:
		if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") && len(n.Args) > 0 {
			return n.Args[:1]
		}
	}
	return nil
}

// rootName is the variable at the bottom of x, x[i], x.f, (x) and *x.
func rootName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return ""
		}
	}
}
