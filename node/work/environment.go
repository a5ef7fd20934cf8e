package work

import (
	"maps"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/node/hold"
)

// defaultPath is where programs are looked for.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/cuda/bin"

// EnvironmentOf is what a command finds in a place, as K=V by name.
func EnvironmentOf(place hold.Place, c Command) []string { return environment(place, c) }

// environment is what a command finds: little of its own, what the holder wants, and what
// the place demands. Nothing of the daemon's is in it.
func environment(place hold.Place, c Command) []string {
	env := map[string]string{"PATH": defaultPath, "HOME": place.Home, "USER": userName(place), "SHELL": shell(),
		"LANG": "C.UTF-8"}
	env["LOGNAME"] = env["USER"]
	if c.Terminal != nil && c.Terminal.Name != "" {
		env["TERM"] = c.Terminal.Name
	}
	maps.Copy(env, c.Environment)
	for _, v := range place.Environment {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	out := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// userName is the name of the user that work runs as; one of a hold's own has none.
func userName(place hold.Place) string {
	id := strconv.FormatUint(uint64(place.UID), 10)
	if place.OwnUser {
		return "forewarm-" + id
	}
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

func shell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}
