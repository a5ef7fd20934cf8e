package ssh

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
)

// remote is what every call runs. It is sent anew each time: nothing of ours is
// installed on a machine, so nothing there can be of another version.
//
//go:embed remote.sh
var remote string

// call is one call of the script's main.
type call struct {
	verb string
	args []string
	env  map[string]string
}

// doubtKind is what is known of a call whose answer was lost.
func (c call) doubtKind() provisioners.Kind {
	switch c.verb {
	case "survey", "look", "standing", "missing":
		return provisioners.KindTransient
	default:
		return provisioners.KindUnknown
	}
}

// scriptText is the whole script. The login shell, whichever it is, sees none of it.
// Its standard input is closed to what it runs: the script itself comes from
// there.
func (c call) scriptText(stateDir string) string {
	var b strings.Builder
	b.WriteString(remote)
	for name, value := range c.env {
		b.WriteString("export " + name + "=" + shellQuote(value) + "\n")
	}
	b.WriteString("main " + shellQuote(c.verb) + " " + shellQuote(stateDir))
	for _, arg := range c.args {
		b.WriteString(" " + shellQuote(arg))
	}
	b.WriteString(" </dev/null\nexit $?\n")
	return b.String()
}

// shellQuote makes one word of any text for a POSIX shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// askHost makes the call on the host and reads the answer.
func (f *Fleet) askHost(ctx context.Context, h Host, c call) (report, error) {
	output, err := f.runCommand(ctx, h, "/bin/sh -s", strings.NewReader(c.scriptText(f.config.StateDir)))
	var r report
	if err == nil {
		r, err = parseReport(output)
	}
	var typed *provisioners.Error
	if err != nil && !errors.As(err, &typed) {
		err = &provisioners.Error{Kind: c.doubtKind(), Scope: h.Name, Message: "asking the host to " + c.verb, Err: err}
	}
	return r, err
}

// probeArgs are the arguments that a probe needs.
func (f *Fleet) probeArgs() []string {
	return []string{f.config.Probe, strconv.Itoa(int(f.config.ProbeTimeout.Seconds()))}
}

// installCommand is the command that puts a copied file in its place.
func (file File) installCommand(sum string) string {
	to, fresh := shellQuote(file.To), shellQuote(file.To+".forewarm-new")
	return fmt.Sprintf(`mkdir -p -- %s && cp -- "$FOREWARM_ROOT/files/%s" %s && chmod %s %s && mv -f -- %s %s`,
		shellQuote(path.Dir(file.To)), sum, fresh, file.Mode, fresh, fresh, to)
}

// environmentOf is what the setup's commands know.
func (s Setup) environmentOf(c claim, daemon provisioners.Daemon) map[string]string {
	env := map[string]string{
		"FOREWARM_INSTANCE_ID": c.ID, "FOREWARM_NODE_ID": c.Node, "FOREWARM_OWNER": c.Owner, "FOREWARM_TYPE": c.Type,
	}
	if s.Daemon && daemon.URL != "" {
		env["FOREWARM_URL"], env["FOREWARM_JOIN_TOKEN"] = daemon.URL, daemon.Token.Reveal()
	}
	for _, name := range s.Env {
		if value, set := os.LookupEnv(name); set {
			env[name] = value
		}
	}
	return env
}
