package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/forewarm/forewarm/internal/obs"
	"github.com/forewarm/forewarm/internal/statefile"
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

// SavedContexts are the contexts in the settings of whoever runs this program. The
// file is readable by its owner alone.
type SavedContexts struct{}

// Save saves a server and its key and selects them. The name is the one given, or,
// where that is another server's, the first of NAME-2, NAME-3 and so on that is not.
func (SavedContexts) Save(name, server string, key obs.Secret) (saved string, err error) {
	err = changeContexts(func(f *contextFile) {
		saved = f.nameFor(name, server)
		f.Contexts[saved] = Context{Server: server, Key: key.Reveal()}
		f.Current = saved
	})
	return saved, err
}

// Move has a context stand for the same key at another address of its server.
func (SavedContexts) Move(name, server string) error {
	return changeContexts(func(f *contextFile) {
		f.Contexts[name] = Context{Server: server,
			Key: f.Contexts[name].Key}
	})
}

func changeContexts(change func(*contextFile)) error {
	path, err := contextPath(os.Getenv)
	if err != nil {
		return err
	}
	f, err := loadContexts(path)
	if err != nil {
		return err
	}
	change(&f)
	return writeContexts(path, f)
}

// nameFor is the name under which a server may be saved without another's being lost.
func (f contextFile) nameFor(name, server string) string {
	free := name
	for n := 2; ; n++ {
		if c, taken := f.Contexts[free]; !taken || c.Server == server {
			return free
		}
		free = fmt.Sprintf("%s-%d", name, n)
	}
}

// Of returns the keys that are saved for a server, by the names of their contexts.
func (SavedContexts) Of(server string) (map[string]obs.Secret, error) {
	path, err := contextPath(os.Getenv)
	if err != nil {
		return nil, err
	}
	f, err := loadContexts(path)
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
	if err := statefile.Replace(path, data); err != nil {
		return fmt.Errorf("saving contexts: %w", err)
	}
	return nil
}

// findTarget finds the server and its key: flags before the environment before what
// was saved. A saved key goes to the server that it was saved for and to no
// other: who names a context and another server must bring a key.
func (a *app) findTarget() (Context, error) {
	path, err := contextPath(a.getenv)
	saved := contextFile{}
	if err == nil {
		if saved, err = loadContexts(path); err != nil {
			return Context{}, err
		}
	}
	t, err := a.chooseContext(saved)
	if err != nil {
		return t, err
	}
	key, err := a.keyFromEnv()
	if key != "" || err != nil {
		t.Key = key
	}
	return t, err
}

// errForeignKey is why a context's key is not used for a server that was named
// beside it.
var errForeignKey = errors.New("the key of a context is for its own server")

// chooseContext is the saved context that fits what the user named, which may be its
// server beside it.
func (a *app) chooseContext(saved contextFile) (Context, error) {
	source, server := a.namedServer()
	if name := firstNonEmpty(a.flags.context, a.getenv("FOREWARM_CONTEXT")); name != "" {
		return a.contextByName(saved, name, source, server)
	}
	current := saved.Contexts[saved.Current]
	if server == "" {
		return Context{Server: firstNonEmpty(current.Server, DefaultServer), Key: current.Key}, nil
	}
	if current.Server == server {
		return current, nil
	}
	return saved.Contexts[saved.contextForServer(server)].withDefaultServer(server), nil
}

// namedServer is the server that was named, and by what. A flag counts before the
// environment, of which --context leaves no address.
func (a *app) namedServer() (source, server string) {
	switch {
	case a.flags.server != "":
		source, server = "--server", a.flags.server
	case a.flags.context == "":
		source, server = "FOREWARM_API", a.getenv("FOREWARM_API")
	}
	return source, strings.TrimRight(server, "/")
}

// contextByName is a context by its name, and a server that was named beside it,
// which gets the context's key only if it is the server of that.
func (a *app) contextByName(saved contextFile, name, source, server string) (Context, error) {
	c, ok := saved.Contexts[name]
	key, err := a.keyFromEnv()
	switch {
	case !ok:
		return c, noContext(name)
	case server == "" || server == c.Server:
		return c, nil
	case key != "" || err != nil:
		return Context{Server: server}, err
	}
	e := usageErrorf("forewarm login --server "+shellQuote(server)+" --name NAME",
		"%s %s is not the server of context %q, which is %s, and a context's key goes to no other server", source,
		server, name, c.Server)
	if other := saved.contextForServer(server); other != "" {
		e.Next = []string{"forewarm status --context " + shellQuote(other)}
	}
	e.Err = errForeignKey
	return Context{Server: server}, e
}

// noContext says that nothing is saved under a name.
func noContext(name string) error {
	return &Error{Exit: ExitNotFound, Message: fmt.Sprintf("no context %q is saved", name),
		Next: []string{"forewarm contexts list"}}
}

// contextForServer is the first context of a server; empty when none is.
func (f contextFile) contextForServer(server string) string {
	for _, name := range sortedKeys(f.Contexts) {
		if f.Contexts[name].Server == server {
			return name
		}
	}
	return ""
}

// withDefaultServer is the context, or none but a server.
func (c Context) withDefaultServer(server string) Context {
	if c.Server == "" {
		c.Server = server
	}
	return c
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
		return "", &Error{Exit: ExitLogin, Message: "reading FOREWARM_API_KEY_FILE: " + err.Error(),
			Next: []string{"forewarm login --key-file FILE"}, Err: err}
	}
	return strings.TrimSpace(string(data)), nil
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
