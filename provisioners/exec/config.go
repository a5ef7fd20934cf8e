package exec

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/forewarm/forewarm/provisioners"
)

// Config says which scripts to run and how.
type Config struct {
	Name string `yaml:"name"` // default "exec"
	// Command is run with the verb as its last argument. Its first word is an
	// absolute path or is looked for in PATH.
	Command []string `yaml:"command"`
	// Commands are run instead of Command, each for its verb, as they stand.
	Commands Commands `yaml:"commands"`
	// Renews says that Command knows the verb renew: machines then carry an end
	// of their own, which the control plane moves. Commands.Renew says the same.
	Renews bool `yaml:"renews"`
	// Daemon says that the scripts start the node's daemon on their machines: create is then
	// given what it needs to join.
	Daemon bool `yaml:"daemon"`
	// Offers are what can be asked for. Without any the script says it.
	Offers []Offer `yaml:"offers"`
	// Simulated marks everything that the scripts make as not real.
	Simulated bool `yaml:"simulated"`
	// Env names the variables that a script gets beside PATH and HOME.
	Env []string `yaml:"env"`
	// Dir is the folder that scripts run in. Default: that of the control plane.
	Dir string `yaml:"dir"`
	// Timeout ends a script that takes longer; default 60 s. Timeouts are for
	// single verbs.
	Timeout  time.Duration `yaml:"timeout"`
	Timeouts Timeouts      `yaml:"timeouts"`
	// Parallel is how many scripts run at once, default 4. With 1 a script needs
	// no lock, as long as one worker alone runs it.
	Parallel int `yaml:"parallel"`
}

// Commands is a command for each verb. An empty one means Config.Command.
type Commands struct {
	Create []string `yaml:"create"`
	Get    []string `yaml:"get"`
	List   []string `yaml:"list"`
	Delete []string `yaml:"delete"`
	Offers []string `yaml:"offers"`
	Renew  []string `yaml:"renew"`
}

// Timeouts is a time-out for each verb. Zero means Config.Timeout.
type Timeouts struct {
	Create time.Duration `yaml:"create"`
	Get    time.Duration `yaml:"get"`
	List   time.Duration `yaml:"list"`
	Delete time.Duration `yaml:"delete"`
	Offers time.Duration `yaml:"offers"`
	Renew  time.Duration `yaml:"renew"`
}

const (
	usualTimeout  = time.Minute
	usualParallel = 4
	mostParallel  = 64
)

// WithDefaults returns the config with every unset field set.
func (c Config) WithDefaults() Config {
	if c.Name == "" {
		c.Name = "exec"
	}
	if c.Timeout == 0 {
		c.Timeout = usualTimeout
	}
	if c.Parallel == 0 {
		c.Parallel = usualParallel
	}
	return c
}

// Validate returns every mistake in the config, each with its field. It looks at
// no file: a script may come later than its config.
func (c Config) Validate() error {
	mistakes := []error{provisioners.CheckName(c.Name), c.checkCommands(), c.checkTimeouts(),
		checkOffers("offers", c.Offers)}
	if c.Parallel < 1 || c.Parallel > mostParallel {
		mistakes = append(mistakes, fmt.Errorf("parallel: %d is not between 1 and %d", c.Parallel, mostParallel))
	}
	for i, name := range c.Env {
		if !variable.MatchString(name) {
			mistakes = append(mistakes, fmt.Errorf("env[%d]: %q is not the name of a variable", i, name))
		}
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		mistakes = append(mistakes, fmt.Errorf("dir: %q is not an absolute path", c.Dir))
	}
	return errors.Join(mistakes...)
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (c Config) checkCommands() error {
	var mistakes []error
	if len(c.Command) > 0 {
		mistakes = append(mistakes, checkArgv("command", c.Command))
	}
	for _, v := range verbs {
		own := c.Commands.commandOf(v)
		switch {
		case len(own) > 0:
			mistakes = append(mistakes, checkArgv("commands."+string(v), own))
		case len(c.Command) == 0 && c.needsVerb(v):
			mistakes = append(mistakes, fmt.Errorf("commands.%s: is missing, and there is no command", v))
		}
	}
	if len(c.Offers) > 0 && len(c.Commands.Offers) > 0 {
		mistakes = append(mistakes, errors.New("offers, commands.offers: want one of the two"))
	}
	return errors.Join(mistakes...)
}

// needsVerb reports whether the verb is ever run.
func (c Config) needsVerb(v verb) bool {
	switch v {
	case verbOffers:
		return len(c.Offers) == 0
	case verbRenew:
		return c.canRenew()
	default:
		return true
	}
}

// checkArgv refuses a path that would depend on the folder we happen to be
// started in.
func checkArgv(field string, argv []string) error {
	program := argv[0]
	if program == "" || strings.ContainsRune(program, '/') && !filepath.IsAbs(program) {
		return fmt.Errorf("%s[0]: %q is neither an absolute path nor a name to look for in PATH", field, program)
	}
	return nil
}

func (c Config) checkTimeouts() error {
	var mistakes []error
	if c.Timeout < 0 {
		mistakes = append(mistakes, fmt.Errorf("timeout: %v is negative", c.Timeout))
	}
	for _, v := range verbs {
		if own := c.Timeouts.timeoutOf(v); own < 0 {
			mistakes = append(mistakes, fmt.Errorf("timeouts.%s: %v is negative", v, own))
		}
	}
	return errors.Join(mistakes...)
}

func (c Config) canRenew() bool { return c.Renews || len(c.Commands.Renew) > 0 }

// commandOf is what is run for the verb.
func (c Config) commandOf(v verb) []string {
	if own := c.Commands.commandOf(v); len(own) > 0 {
		return own
	}
	return append(c.Command[:len(c.Command):len(c.Command)], string(v))
}

func (c Config) timeoutOf(v verb) time.Duration {
	if own := c.Timeouts.timeoutOf(v); own > 0 {
		return own
	}
	return c.Timeout
}
