package ssh

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/forewarm/forewarm/provisioners"
)

// Create claims a machine for the token and starts its setup, or finds the claim
// that the token made.
func (f *Fleet) Create(ctx context.Context, token string, spec provisioners.Spec) (provisioners.Instance, error) {
	if err := f.checkRequest(ctx, token, spec); err != nil {
		return provisioners.Instance{}, err
	}
	asked := f.askAll(ctx, call{verb: "survey", args: append([]string{tokenHash(token)}, f.probeArgs()...)})
	if i := slices.IndexFunc(asked, func(a answered) bool { return a.err == nil && a.state == "known" }); i >= 0 {
		return f.resumeClaim(ctx, asked[i], spec)
	}
	return f.walkHosts(ctx, asked, token, spec)
}

func (f *Fleet) checkRequest(ctx context.Context, token string, spec provisioners.Spec) error {
	if err := provisioners.Ended(ctx); err != nil {
		return err
	}
	if err := spec.Check(token); err != nil {
		return err
	}
	if !slices.ContainsFunc(f.config.Hosts, func(h Host) bool { return h.matchesSpec(spec) }) {
		return provisioners.Errorf(provisioners.KindBadSpec, "no host of type %q in region %q", spec.Type, spec.Region)
	}
	return nil
}

// matchesSpec reports whether the host is of the kind that is asked for.
func (h Host) matchesSpec(spec provisioners.Spec) bool {
	return h.Type == spec.Type && (spec.Region == "" || spec.Region == h.Region)
}

// walkHosts goes the token's way until a host has it. A host of which nothing is known
// ends the walk: it may have the token.
func (f *Fleet) walkHosts(ctx context.Context, asked []answered, token string,
	spec provisioners.Spec) (provisioners.Instance, error) {
	taken, unfit := 0, []string{}
	for _, a := range hostOrder(asked, token, spec) {
		if a.err != nil {
			return provisioners.Instance{}, stuckError(a, asked)
		}
		if a.state == "passed" {
			taken++
			continue
		}
		decide := call{verb: "refuse", args: []string{tokenHash(token)}}
		if _, fault := a.judgeDevices(a.host); fault == "" {
			id, text := newClaim(a.host, token, spec, f.clock.Now())
			decide = call{verb: "claim", args: []string{tokenHash(token), id, text}}
		} else {
			unfit = append(unfit, a.host.Name+": "+fault)
		}
		r, err := f.askHost(ctx, a.host, decide)
		if err != nil {
			return provisioners.Instance{}, err
		}
		if r.state == "known" {
			return f.resumeClaim(ctx, answered{report: r, host: a.host}, spec)
		}
	}
	message := fmt.Sprintf("%d machines are taken, %d are unfit", taken, len(unfit))
	return provisioners.Instance{}, &provisioners.Error{
		Kind: provisioners.KindCapacity, Scope: spec.Region + "/" + spec.Type,
		Message: strings.Join(append([]string{message}, unfit...), "; "),
	}
}

// hostOrder is the order in which the token comes by the hosts that could serve it.
// Every token has its own, so that they do not all try the same host first.
func hostOrder(asked []answered, token string, spec provisioners.Spec) []answered {
	asked = slices.DeleteFunc(slices.Clone(asked), func(a answered) bool { return !a.host.matchesSpec(spec) })
	slices.SortFunc(asked, func(a, b answered) int {
		return cmp.Compare(tokenHash(token+" "+a.host.Name), tokenHash(token+" "+b.host.Name))
	})
	return asked
}

// stuckError is the error of a host that is in the token's way. That we are refused is
// final only when all hosts do: then it is our key.
func stuckError(a answered, asked []answered) error {
	kind := provisioners.KindTransient
	if !slices.ContainsFunc(asked,
		func(a answered) bool { return provisioners.KindOf(a.err) != provisioners.KindDenied }) {
		kind = provisioners.KindDenied
	}
	return &provisioners.Error{
		Kind: kind, Scope: a.host.Name, Err: a.err,
		Message: "a host that may have this machine cannot be asked; if it is out of service, say so in its config",
	}
}

// resumeClaim answers the token's claim, and starts its setup where that did not
// happen yet: whoever made the claim may have died right after.
func (f *Fleet) resumeClaim(ctx context.Context, a answered, spec provisioners.Spec) (provisioners.Instance, error) {
	if a.claim.portSpec() != spec.Identity() {
		return provisioners.Instance{}, provisioners.Errorf(provisioners.KindBadSpec, "the token was used for %+v",
			a.claim.portSpec())
	}
	if a.phase == "standing" && (a.boot == notStarted || a.boot == diedEarly) {
		r, err := f.startSetup(ctx, a, spec.Daemon)
		if err != nil {
			return provisioners.Instance{}, err
		}
		a.report = r
	}
	if a.phase == "standing" && a.boot == succeeded {
		return f.Get(ctx, a.claim.ID)
	}
	return a.portInstance(a.host), nil
}

// startSetup copies what the setup needs and starts it.
func (f *Fleet) startSetup(ctx context.Context, a answered, daemon provisioners.Daemon) (report, error) {
	args := []string{a.claim.ID}
	if len(f.config.Setup.Copy) > 0 {
		sums, err := f.copyAll(ctx, a.host)
		if err != nil {
			// The machine is claimed, whatever became of the files.
			return report{}, &provisioners.Error{Kind: provisioners.KindUnknown, Scope: a.host.Name,
				Message: "copying files for the setup", Err: err}
		}
		for i, file := range f.config.Setup.Copy {
			args = append(args, file.installCommand(sums[i]))
		}
	}
	r, err := f.askHost(ctx, a.host, call{verb: "boot", args: append(args, f.config.Setup.Commands...),
		env: f.config.Setup.environmentOf(a.claim, daemon)})
	if err == nil && r.state != "known" {
		err = provisioners.Errorf(provisioners.KindUnknown, "host %s forgot the claim it has just made", a.host.Name)
	}
	if err != nil {
		return report{}, &provisioners.Error{Kind: provisioners.KindUnknown, Scope: a.host.Name,
			Message: "starting the setup", Err: err}
	}
	return r, nil
}

// copyAll puts the files on the host under their sums, those that are not there.
func (f *Fleet) copyAll(ctx context.Context, h Host) ([]string, error) {
	sums := make([]string, len(f.config.Setup.Copy))
	for i, file := range f.config.Setup.Copy {
		sum, err := sumOf(file.From)
		if err != nil {
			return nil, err
		}
		sums[i] = sum
	}
	r, err := f.askHost(ctx, h, call{verb: "missing", args: sums})
	if err != nil {
		return nil, err
	}
	for i, file := range f.config.Setup.Copy {
		if slices.Contains(r.missing, sums[i]) {
			if err := f.copyFile(ctx, h, file.From, sums[i]); err != nil {
				return nil, err
			}
		}
	}
	return sums, nil
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// putting keeps a file only when all of it came: the input of a connection that
// breaks ends like one that is complete. No argument holds anything that a login
// shell, whichever it is, would look at twice.
const putting = `umask 077; d=$1/$(uname -n)/files; mkdir -p "$d" && ` +
	`cat >"$d/$2.$$" && [ "$(wc -c <"$d/$2.$$")" -eq "$3" ] && mv -f "$d/$2.$$" "$d/$2"`

func (f *Fleet) copyFile(ctx context.Context, h Host, path, sum string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	command := fmt.Sprintf("/bin/sh -c %s sh %s %s %d", shellQuote(putting), shellQuote(f.config.StateDir), sum,
		info.Size())
	if _, err := f.runCommand(ctx, h, command, file); err != nil {
		return fmt.Errorf("copying %s: %w", path, err)
	}
	return nil
}
