package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/strictyaml"
)

// Context is a server and the key for it, saved under a name.
type Context struct {
	Server string `yaml:"server" json:"server"`
	Key    string `yaml:"key,omitempty" json:"-"`
}

// contextFile is what is saved.
type contextFile struct {
	Current  string             `yaml:"current"`
	Contexts map[string]Context `yaml:"contexts"`
}

// SaveContext saves a server and its key under a name and selects it. The file
// is readable by its owner alone.
func SaveContext(name string, c Context) error {
	return saveContext(os.Getenv, name, c)
}

func saveContext(getenv func(string) string, name string, c Context) error {
	path, err := contextPath(getenv)
	if err != nil {
		return err
	}
	f, err := loadContexts(path)
	if err != nil {
		return err
	}
	f.Contexts[name] = c
	f.Current = name
	return writeContexts(path, f)
}

func contextPath(getenv func(string) string) (string, error) {
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

func loadContexts(path string) (contextFile, error) {
	f := contextFile{Contexts: map[string]Context{}}
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

// writeContexts puts a whole new file in the old one's place.
func writeContexts(path string, f contextFile) error {
	data, err := yaml.Marshal(f)
	if err != nil {
		return fmt.Errorf("encoding contexts: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("saving contexts: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".contexts-*") // 0600
	if err != nil {
		return fmt.Errorf("saving contexts: %w", err)
	}
	_, werr := tmp.Write(data)
	err = errors.Join(werr, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("saving contexts: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}

// target finds the server and its key: flags before the environment before what
// was saved. A saved key goes to the server that it was saved for and to no
// other.
func (a *app) target() (Context, error) {
	path, err := contextPath(a.getenv)
	saved := contextFile{}
	if err == nil {
		if saved, err = loadContexts(path); err != nil {
			return Context{}, err
		}
	}
	t, err := a.chosen(saved)
	if err != nil {
		return t, err
	}
	key, err := a.keyFromEnv()
	if key != "" || err != nil {
		t.Key = key
	}
	return t, err
}

// chosen is the saved context that fits what the user named.
func (a *app) chosen(saved contextFile) (Context, error) {
	if name := first(a.flags.context, a.getenv("FOREWARM_CONTEXT")); name != "" {
		c, ok := saved.Contexts[name]
		if !ok {
			return c, usagef("forewarm contexts list", "no context %q is saved", name)
		}
		return c, nil
	}
	server := strings.TrimRight(first(a.flags.server, a.getenv("FOREWARM_API")), "/")
	current := saved.Contexts[saved.Current]
	if server == "" {
		return Context{Server: first(current.Server, DefaultServer), Key: current.Key}, nil
	}
	if current.Server == server {
		return current, nil
	}
	for _, name := range sorted(saved.Contexts) {
		if saved.Contexts[name].Server == server {
			return saved.Contexts[name], nil
		}
	}
	return Context{Server: server}, nil
}

func (a *app) keyFromEnv() (string, error) {
	if key := a.getenv("FOREWARM_API_KEY"); key != "" {
		return strings.TrimSpace(key), nil
	}
	path := a.getenv("FOREWARM_API_KEY_FILE")
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", &Error{Exit: ExitLogin, Message: "reading FOREWARM_API_KEY_FILE: " + err.Error(), Next: []string{"forewarm login --key-file FILE"}, Err: err}
	}
	return strings.TrimSpace(string(data)), nil
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
