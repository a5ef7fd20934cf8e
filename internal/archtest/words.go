package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

const whyWords = "docs/GLOSSARY.md has one word for each meaning: use that one"

// Word is a word that the tree no longer uses.
type Word struct {
	Old string // in lower case; two words that follow each other are joined by a space
	New string
}

// checkWords is D14: a word that was replaced does not come back, neither as a
// part of a name that is declared here nor, where it was shown to users, in a
// string. Names of other modules are theirs.
func checkWords(t Tree, r Rules) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		for _, f := range p.Files {
			forEachDeclared(f.Syntax, func(id *ast.Ident) {
				for _, w := range r.Words {
					if containsWord(splitCamel(id.Name), strings.Fields(w.Old)) {
						found = append(found, Violation{"D14", f.positionOf(id.Pos()),
							id.Name + " says " + w.Old + ", which is now " + w.New, whyWords})
					}
				}
			})
			found = append(found, shownWords(f, r)...)
		}
	}
	return found
}

// shownWords finds texts that a user would read or type, but for those of tests,
// which may show that an old form is refused, and for the list of the words.
func shownWords(f File, r Rules) []Violation {
	if f.Test || strings.HasPrefix(f.Name, "internal/archtest/") {
		return nil
	}
	var found []Violation
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		text, ok := n.(*ast.BasicLit)
		if !ok || text.Kind != token.STRING {
			return true
		}
		for _, w := range r.Texts {
			if strings.Contains(text.Value, w.Old) {
				found = append(found, Violation{"D14", f.positionOf(text.Pos()),
					"a text says " + w.Old + ", which is now " + w.New, whyWords})
			}
		}
		return true
	})
	return found
}

// forEachDeclared calls visit for every name that the file declares.
func forEachDeclared(file *ast.File, visit func(*ast.Ident)) {
	visitAll := func(ids []*ast.Ident) {
		for _, id := range ids {
			visit(id)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			visit(n.Name)
		case *ast.TypeSpec:
			visit(n.Name)
		case *ast.ValueSpec:
			visitAll(n.Names)
		case *ast.Field:
			visitAll(n.Names)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				visitNames(n.Lhs, visit)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				visitNames([]ast.Expr{n.Key, n.Value}, visit)
			}
		}
		return true
	})
}

func visitNames(left []ast.Expr, visit func(*ast.Ident)) {
	for _, e := range left {
		if id, ok := e.(*ast.Ident); ok {
			visit(id)
		}
	}
}

// splitCamel returns a name's words in lower case: newHTTPClient is new, http, client.
func splitCamel(name string) []string {
	var words []string
	runes, from := []rune(name), 0
	for i := 1; i <= len(runes); i++ {
		switch {
		case i < len(runes) && runes[i] == '_':
		case i < len(runes) && !unicode.IsUpper(runes[i]) && runes[i-1] != '_':
			continue
		case i < len(runes) && unicode.IsUpper(runes[i-1]) && (i+1 == len(runes) || unicode.IsUpper(runes[i+1])):
			continue
		}
		if word := strings.ToLower(strings.Trim(string(runes[from:i]), "_")); word != "" {
			words = append(words, word)
		}
		from = i
	}
	return words
}

// containsWord reports whether the words of old follow each other in a name.
func containsWord(name, old []string) bool {
	for i := range len(name) - len(old) + 1 {
		if slices.Equal(name[i:i+len(old)], old) {
			return true
		}
	}
	return false
}
