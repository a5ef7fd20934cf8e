package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
	"github.com/forewarm/forewarm/internal/httpx"
)

func (a *app) newLoginCommand() *cobra.Command {
	var as, file string
	c := &cobra.Command{
		Use: "login", Short: "Save a server and the key for it", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := a.findTarget()
			if err != nil && !errors.Is(err, errForeignKey) {
				return err
			}
			if t.Key, err = a.readNewKey(cmd, file, t.Key); err != nil {
				return err
			}
			api, err := client.New(t.Server, t.Key, httpx.NewClient(httpx.Config{UserAgent: a.userAgent()}))
			if err != nil {
				return &Error{Exit: ExitUsage, Message: err.Error(),
					Next: []string{"forewarm login --server " + DefaultServer}}
			}
			who, err := api.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			if a.flags.dryRun {
				a.say(cmd, "Dry run: nothing was changed. %s accepts the key %s, role %s; it would be saved as "+
					"context %q.", t.Server, firstNonEmpty(who.KeyName, who.KeyID), who.Role, as)
				return nil
			}
			if err := saveContext(a.getenv, as, t); err != nil {
				return err
			}
			a.say(cmd, "Logged in to %s with key %s, role %s; saved as context %q.", t.Server,
				firstNonEmpty(who.KeyName, who.KeyID), who.Role, as)
			a.say(cmd, "Next:  forewarm status")
			return nil
		},
	}
	c.Flags().StringVar(&as, "name", "default", "name of the saved context")
	c.Flags().StringVar(&file, "key-file", "", "file that holds the key; - reads standard input")
	return c
}

// readNewKey reads the key to save: from a file or standard input, else from the
// environment, else from a person. It is never an argument, which others could
// see.
func (a *app) readNewKey(cmd *cobra.Command, file, known string) (string, error) {
	switch {
	case file == "-":
		data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 4096))
		if err != nil {
			return "", fmt.Errorf("reading the key: %w", err)
		}
		return strings.TrimSpace(string(data)), nil
	case file != "":
		data, err := os.ReadFile(file)
		if err != nil {
			return "", &Error{Exit: ExitUsage, Message: "--key-file: " + err.Error(),
				Next: []string{"forewarm login --key-file FILE"}, Err: err}
		}
		return strings.TrimSpace(string(data)), nil
	case known != "":
		return known, nil
	case !a.terminal(cmd.InOrStdin()):
		return "", &Error{Exit: ExitLogin, Message: "no key was given, and there is no terminal to ask at",
			Next: []string{"forewarm login --key-file FILE"}}
	}
	_, _ = fmt.Fprint(cmd.ErrOrStderr(), "API key (it will be visible): ")
	text, err := readLine(cmd.Context(), cmd.InOrStdin())
	return strings.TrimSpace(text), err
}

// savedContext is a context as it is listed, without its key.
type savedContext struct {
	Name    string `json:"name"`
	Server  string `json:"server"`
	Current bool   `json:"current"`
}

var contextView = view[savedContext]{
	name: func(x savedContext) string { return x.Name },
	columns: []column[savedContext]{
		{head: "NAME", cell: func(x savedContext) string { return x.Name }},
		{head: "SERVER", cell: func(x savedContext) string { return x.Server }},
		{head: "CURRENT", cell: func(x savedContext) string { return yesNo(x.Current) }},
	},
}

func (a *app) newContextsCommand() *cobra.Command {
	ls := &cobra.Command{
		Use: "list", Short: "List saved contexts", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, f, err := a.loadSaved()
			if err != nil {
				return err
			}
			var all []savedContext
			for _, n := range sortedKeys(f.Contexts) {
				all = append(all, savedContext{Name: n, Server: f.Contexts[n].Server, Current: n == f.Current})
			}
			return showList(a, cmd, contextView, all)
		},
	}
	use := &cobra.Command{
		Use: "use CONTEXT", Short: "Choose the context that later commands use", Args: exactArgs("CONTEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, f, err := a.loadSaved()
			if err != nil {
				return err
			}
			if _, ok := f.Contexts[args[0]]; !ok {
				return noContext(args[0])
			}
			if a.flags.dryRun {
				a.say(cmd, "Dry run: nothing was changed. Later commands would use %q, %s.", args[0],
					f.Contexts[args[0]].Server)
				return nil
			}
			f.Current = args[0]
			return writeContexts(path, f)
		},
	}
	return newGroupCommand("contexts", "See and choose saved servers", ls, use, a.newDeleteContextCommand())
}

// newDeleteContextCommand forgets a server and its key, which the server goes on knowing.
func (a *app) newDeleteContextCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete CONTEXT", Short: "Forget a saved server and its key", Args: exactArgs("CONTEXT"),
		Long: "Forgets a saved server and the key for it. The key itself goes on working until it expires or is " +
			"revoked.",
		RunE: func(cmd *cobra.Command, args []string) error {
			path, f, err := a.loadSaved()
			if err != nil {
				return err
			}
			name := args[0]
			forgotten, ok := f.Contexts[name]
			if !ok {
				return noContext(name)
			}
			if a.flags.dryRun {
				a.say(cmd, "Dry run: nothing was changed. %q, %s, and its key would be forgotten.", name,
					forgotten.Server)
				return nil
			}
			delete(f.Contexts, name)
			if f.Current == name {
				f.Current = ""
			}
			if err := writeContexts(path, f); err != nil {
				return err
			}
			a.say(cmd, "%q, %s, and its key are forgotten; the key works until it expires or is revoked.", name,
				forgotten.Server)
			return nil
		},
	}
}

func (a *app) loadSaved() (string, contextFile, error) {
	path, err := contextPath(a.getenv)
	if err != nil {
		return "", contextFile{}, err
	}
	f, err := loadContexts(path)
	return path, f, err
}

func (a *app) newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return showOne(a, cmd, view[contract.Build]{
				name: func(b contract.Build) string { return b.Version },
				columns: []column[contract.Build]{
					{head: "VERSION", cell: func(b contract.Build) string { return b.Version }},
					{head: "CONTRACT", cell: func(b contract.Build) string { return b.Contract }},
					{head: "GO", cell: func(b contract.Build) string { return b.GoVersion }},
				},
			}, contract.Build{Version: a.version, Contract: contract.Version, GoVersion: runtime.Version()})
		},
	}
}
