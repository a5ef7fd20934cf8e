// Package contextfile keeps servers and the keys for them, under names, in the
// settings of the user who runs the program.
package contextfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/statefile"
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// DefaultServer is where forewarm up listens.
const DefaultServer = "http://127.0.0.1:8787"

// Context is a server and the key for it, saved under a name.
type Context struct {
	Server string `yaml:"server" json:"server"`
	Key    string `yaml:"key,omitempty" json:"-"`
}

// File is what is saved.
type File struct {
	Current  string             `yaml:"current"`
	Contexts map[string]Context `yaml:"contexts"`
}

// Saved are the contexts in the settings of whoever runs this program. The
// file is readable by its owner alone.
type Saved struct{}

// Save saves a server and its key and selects them. The name is the one given, or,
// where that is another server's, the first of NAME-2, NAME-3 and so on that is not.
func (Saved) Save(name, server string, key obs.Secret) (saved string, err error) {
	err = changeContexts(func(f *File) {
		saved = f.nameFor(name, server)
		f.Contexts[saved] = Context{Server: server, Key: key.Reveal()}
		f.Current = saved
	})
	return saved, err
}

// Move has a context stand for the same key at another address of its server.
func (Saved) Move(name, server string) error {
	return changeContexts(func(f *File) {
		f.Contexts[name] = Context{Server: server,
			Key: f.Contexts[name].Key}
	})
}

func changeContexts(change func(*File)) error {
	path, err := Path(os.Getenv)
	if err != nil {
		return err
	}
	f, err := Load(path)
	if err != nil {
		return err
	}
	change(&f)
	return Write(path, f)
}

// nameFor is the name under which a server may be saved without another's being lost.
func (f File) nameFor(name, server string) string {
	free := name
	for n := 2; ; n++ {
		if c, taken := f.Contexts[free]; !taken || c.Server == server {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// Current is the name of the selected context; empty: none is.
func (Saved) Current() (string, error) {
	f, err := loadSaved()
	return f.Current, err
}

func loadSaved() (File, error) {
	path, err := Path(os.Getenv)
	if err != nil {
		return File{}, err
	}
	return Load(path)
}

// Of returns the keys that are saved for a server, by the names of their contexts.
func (Saved) Of(server string) (map[string]obs.Secret, error) {
	f, err := loadSaved()
	if err != nil {
		return nil, err
	}
	found := map[string]obs.Secret{}
	for name, c := range f.Contexts {
		if c.Server == server {
			found[name] = obs.NewSecret(c.Key)
		}
	}
	return found, nil
}

// Save saves a context and selects it.
func Save(getenv func(string) string, name string, c Context) error {
	path, err := Path(getenv)
	if err != nil {
		return err
	}
	f, err := Load(path)
	if err != nil {
		return err
	}
	f.Contexts[name] = c
	f.Current = name
	return Write(path, f)
}

// Path is where contexts are saved.
func Path(getenv func(string) string) (string, error) {
	dir := getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_CONFIG_HOME nor HOME says where settings are kept")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "forewarm", "contexts.yaml"), nil
}

// Load reads the saved contexts; none when the file is not there.
func Load(path string) (File, error) {
	f := File{Contexts: map[string]Context{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("reading saved contexts: %w", err)
	}
	if err := strictyaml.Decode(path, data, &f); err != nil {
		return f, err
	}
	return f, nil
}

// Write puts a whole new file in the old one's place.
func Write(path string, f File) error {
	data, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding contexts: %w", err)
	}
	if err := statefile.Replace(path, data); err != nil {
		return fmt.Errorf("saving contexts: %w", err)
	}
	return nil
}

// ContextForServer is the first context of a server; empty when none is.
func (f File) ContextForServer(server string) string {
	for _, name := range slices.Sorted(maps.Keys(f.Contexts)) {
		if f.Contexts[name].Server == server {
			return name
		}
	}
	return ""
}

// WithDefaultServer is the context, or none but a server.
func (c Context) WithDefaultServer(server string) Context {
	if c.Server == "" {
		c.Server = server
	}
	return c
}
