package app

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/forewarm/forewarm/cli/contextfile"
	"github.com/forewarm/forewarm/cli/exit"
	"github.com/forewarm/forewarm/cli/flags"
)

// Target finds the server and its key: flags before the environment before what
// was saved. A saved key goes to the server that it was saved for and to no
// other: who names a context and another server must bring a key.
func (a *App) Target() (contextfile.Context, error) {
	a.warnOfEmptyVariables()
	path, err := contextfile.Path(a.Getenv)
	saved := contextfile.File{}
	if err == nil {
		if saved, err = contextfile.Load(path); err != nil {
			return contextfile.Context{}, err
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
	a.WarnOfPlainKey(t)
	return t, err
}

// WarnOfPlainKey says once that everybody on the way to the server can read the key.
func (a *App) WarnOfPlainKey(t contextfile.Context) {
	u, err := url.Parse(t.Server)
	if err != nil || u.Scheme != "http" || t.Key == "" || a.saidPlainKey || a.OnPlainKey == nil ||
		u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback() {
		return
	}
	a.saidPlainKey = true
	a.OnPlainKey(u.Host)
}

// targetVariables are those that decide which server is asked, and with which key.
var targetVariables = []string{"FOREWARM_API", "FOREWARM_CONTEXT", "FOREWARM_API_KEY", "FOREWARM_API_KEY_FILE"}

// warnOfEmptyVariables says once which of these are set to nothing, as by a secret that is missing: what was saved
// counts then, as if they were not there.
func (a *App) warnOfEmptyVariables() {
	if a.IsSet == nil || a.OnEmptyVariable == nil || a.saidEmpty {
		return
	}
	a.saidEmpty = true
	for _, name := range targetVariables {
		if a.IsSet(name) && a.Getenv(name) == "" {
			a.OnEmptyVariable(name)
		}
	}
}

// ErrForeignKey is why a context's key is not used for a server that was named
// beside it.
var ErrForeignKey = errors.New("the key of a context is for its own server")

// chooseContext is the saved context that fits what the user named, which may be its
// server beside it.
func (a *App) chooseContext(saved contextfile.File) (contextfile.Context, error) {
	source, server := a.namedServer()
	if name := cmp.Or(a.Flags.Context, a.Getenv("FOREWARM_CONTEXT")); name != "" {
		return a.contextByName(saved, name, source, server)
	}
	current := saved.Contexts[saved.Current]
	if server == "" {
		return contextfile.Context{Server: cmp.Or(current.Server, contextfile.DefaultServer), Key: current.Key}, nil
	}
	if current.Server == server {
		return current, nil
	}
	return saved.Contexts[saved.ContextForServer(server)].WithDefaultServer(server), nil
}

// namedServer is the server that was named, and by what. A flag counts before the
// environment, of which --context leaves no address.
func (a *App) namedServer() (source, server string) {
	switch {
	case a.Flags.Server != "":
		source, server = "--server", a.Flags.Server
	case a.Flags.Context == "":
		source, server = "FOREWARM_API", a.Getenv("FOREWARM_API")
	}
	return source, strings.TrimRight(server, "/")
}

// contextByName is a context by its name, and a server that was named beside it,
// which gets the context's key only if it is the server of that.
func (a *App) contextByName(saved contextfile.File, name, source, server string) (contextfile.Context, error) {
	c, ok := saved.Contexts[name]
	key, err := a.keyFromEnv()
	switch {
	case !ok:
		return c, NoContext(name)
	case server == "" || server == c.Server:
		return c, nil
	case key != "" || err != nil:
		return contextfile.Context{Server: server}, err
	}
	e := exit.UsageErrorf("forewarm login --server "+flags.Quote(server)+" --name NAME",
		"%s %s is not the server of context %q, which is %s, and a context's key goes to no other server", source,
		server, name, c.Server)
	if other := saved.ContextForServer(server); other != "" {
		e.Next = []string{"forewarm status --context " + flags.Quote(other)}
	}
	e.Err = ErrForeignKey
	return contextfile.Context{Server: server}, e
}

// NoContext says that nothing is saved under a name.
func NoContext(name string) error {
	return &exit.Error{Code: exit.NotFound, Message: fmt.Sprintf("no context %q is saved", name),
		Next: []string{"forewarm contexts list"}}
}

func (a *App) keyFromEnv() (string, error) {
	if key := a.Getenv("FOREWARM_API_KEY"); key != "" {
		return strings.TrimSpace(key), nil
	}
	path := a.Getenv("FOREWARM_API_KEY_FILE")
	if path == "" {
		return "", nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", &exit.Error{Code: exit.Login, Message: "reading FOREWARM_API_KEY_FILE: " + err.Error(),
			Next: []string{"forewarm login --key-file FILE"}, Err: err}
	}
	return strings.TrimSpace(string(data)), nil
}
