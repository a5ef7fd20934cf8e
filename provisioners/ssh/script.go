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

// doubt is what is known of a call whose answer was lost.
func (c call) doubt() provisioners.Kind {
	switch c.verb {
	case "survey", "look", "standing", "missing":
		return provisioners.KindTransient
	default:
		return provisioners.KindUnknown
	}
}

// text is the whole script. The login shell, whichever it is, sees none of it.
// Its standard input is closed to what it runs: the script itself comes from
// there.
func (c call) text(stateDir string) string {
	var b strings.Builder
	b.WriteString(remote)
	for name, value := range c.env {
		b.WriteString("export " + name + "=" + quote(value) + "\n")
	}
	b.WriteString("main " + quote(c.verb) + " " + quote(stateDir))
	for _, arg := range c.args {
		b.WriteString(" " + quote(arg))
	}
	b.WriteString(" </dev/null\nexit $?\n")
	return b.String()
}

// quote makes one word of any text for a POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// ask makes the call on the host and reads the answer.
func (f *Fleet) ask(ctx context.Context, h Host, c call) (report, error) {
	output, err := f.command(ctx, h, "/bin/sh -s", strings.NewReader(c.text(f.config.StateDir)))
	var r report
	if err == nil {
		r, err = parseReport(output)
	}
	var typed *provisioners.Error
	if err != nil && !errors.As(err, &typed) {
		err = &provisioners.Error{Kind: c.doubt(), Scope: h.Name, Message: "asking the host to " + c.verb, Err: err}
	}
	return r, err
}

// probed are the arguments that a probe needs.
func (f *Fleet) probed() []string {
	return []string{f.config.Probe, strconv.Itoa(int(f.config.ProbeTimeout.Seconds()))}
}

// installing is the command that puts a copied file in its place.
func (file File) installing(sum string) string {
	to, fresh := quote(file.To), quote(file.To+".forewarm-new")
	return fmt.Sprintf(`mkdir -p -- %s && cp -- "$FOREWARM_ROOT/files/%s" %s && chmod %s %s && mv -f -- %s %s`,
		quote(path.Dir(file.To)), sum, fresh, file.Mode, fresh, fresh, to)
}

// environment is what the setup's commands know.
func (s Setup) environment(c claim) map[string]string {
	env := map[string]string{
		"FOREWARM_INSTANCE_ID": c.ID, "FOREWARM_NODE_ID": c.Node, "FOREWARM_OWNER": c.Owner, "FOREWARM_TYPE": c.Type,
	}
	for _, name := range s.Env {
		if value, set := os.LookupEnv(name); set {
			env[name] = value
		}
	}
	return env
}
