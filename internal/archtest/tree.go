package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// listed is what go list says of one package.
type listed struct {
	ImportPath, Name, Dir                                        string
	Standard                                                     bool
	GoFiles, CgoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
	Deps                                                         []string
	Module                                                       *struct{ Path string }
}

// Load reads the module in root: one call of go list, then a parse of every
// file it names, also of those that build tags leave out.
//
// The platform is pinned, so that the answer is the same on every machine.
func Load(ctx context.Context, root string) (Tree, error) {
	module, modules, err := readGoMod(filepath.Join(root, "go.mod"))
	if err != nil {
		return Tree{}, err
	}
	packages, err := goList(ctx, root)
	if err != nil {
		return Tree{}, err
	}
	tree := Tree{Module: module, Modules: modules, Std: standardLibrary(packages)}
	for _, l := range packages {
		if l.Module == nil || l.Module.Path != module {
			continue
		}
		p, err := parsePackage(root, l)
		if err != nil {
			return Tree{}, err
		}
		tree.Packages = append(tree.Packages, p)
	}
	return tree, nil
}

func goList(ctx context.Context, root string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-e", "-deps",
		"-json=ImportPath,Name,Dir,Standard,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,Deps,Module",
		"./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=1", "GOFLAGS=-buildvcs=false")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running go list: %w: %s", err, stderr.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading go list: %w", err)
		}
		all = append(all, l)
	}
}

// standardLibrary answers from the source tree that the listed packages live in.
func standardLibrary(packages []listed) func(string) bool {
	src := ""
	for _, l := range packages {
		if l.Standard && l.ImportPath == "errors" {
			src = filepath.Dir(l.Dir)
		}
	}
	return func(path string) bool {
		info, err := os.Stat(filepath.Join(src, filepath.FromSlash(path)))
		return src != "" && err == nil && info.IsDir()
	}
}

func parsePackage(root string, l listed) (Package, error) {
	rel, err := filepath.Rel(root, l.Dir)
	if err != nil {
		return Package{}, fmt.Errorf("placing %s: %w", l.Dir, err)
	}
	p := Package{Path: filepath.ToSlash(rel), Name: l.Name, Deps: l.Deps}
	for _, names := range [][]string{l.GoFiles, l.CgoFiles, l.IgnoredGoFiles, l.TestGoFiles, l.XTestGoFiles} {
		for _, name := range names {
			source, err := os.ReadFile(filepath.Join(l.Dir, name))
			if err != nil {
				return Package{}, fmt.Errorf("reading for the rules: %w", err)
			}
			file, err := parseFile(filepath.ToSlash(filepath.Join(rel, name)), source)
			if err != nil {
				return Package{}, fmt.Errorf("parsing for the rules: %w", err)
			}
			p.Files = append(p.Files, file)
		}
	}
	return p, nil
}

// parseFile parses the source of the file of that name, which is relative to the module's root.
func parseFile(name string, source []byte) (File, error) {
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return File{}, err
	}
	f := File{Name: name, Test: strings.HasSuffix(name, "_test.go"), Fset: fset, Syntax: syntax}
	for line := range bytes.Lines(source) {
		f.LineLengths = append(f.LineLengths, utf8.RuneCount(bytes.TrimRight(line, "\r\n")))
	}
	return f, nil
}

// readGoMod returns the module's path and the modules it requires. It reads the
// form that the go command itself writes.
func readGoMod(file string) (module string, required []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", nil, fmt.Errorf("reading go.mod: %w", err)
	}
	block := false
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case fields[0] == "module":
			module = fields[1]
		case fields[0] == "require" && fields[1] == "(":
			block = true
		case fields[0] == ")":
			block = false
		case fields[0] == "require":
			required = append(required, fields[1])
		case block:
			required = append(required, fields[0])
		}
	}
	return module, required, nil
}
