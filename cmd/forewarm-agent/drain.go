package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/forewarm/forewarm/agent/source"
	"github.com/forewarm/forewarm/agent/source/glob"
)

// readAll takes what the sources hold already, so that the first prediction knows the past. It fails where nothing can
// be read and nothing was learned before: such an agent would only look as if it worked. A dry run,
// which is to find out what is missing, fails whatever was learned.
func (p composer) readAll(ctx context.Context, all *composition) error {
	var unread []string
	for i, s := range all.sources {
		failed, err := p.drainSource(ctx, s, all)
		if err != nil {
			return err
		}
		if why := p.cfg.Sources[i].whyAbsent(); why != "" {
			p.logger.Warn(why+"; it is read once it exists", "source", s.Name())
			unread = append(unread, why)
		} else if failed != nil {
			unread = append(unread, failed.Error())
		}
	}
	p.warnOfTenant(all)
	if len(unread) < len(all.sources) {
		return nil
	}
	if _, err := os.Stat(p.statePath(stateFile)); p.silent || errors.Is(err, fs.ErrNotExist) {
		return &nothingRead{unread}
	}
	return nil
}

// nothingRead says that there is nothing to learn from, and why of each source.
type nothingRead struct{ why []string }

// Error names each source.
func (e *nothingRead) Error() string {
	return "nothing can be read, so there is nothing to learn from:\n  " + strings.Join(e.why, "\n  ")
}

// whyAbsent says that the files of a source are not there, or is empty.
func (s sourceConfig) whyAbsent() string {
	if glob.IsPattern(s.Path) {
		if found, err := glob.Matches(s.Path); err == nil && len(found) > 0 {
			return ""
		}
		return fmt.Sprintf("source %s: no file matches %s", s.displayName(), s.Path)
	}
	if _, err := os.Stat(s.Path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("source %s: there is no file %s", s.displayName(), s.Path)
	}
	return ""
}

// drainSource takes what one source holds already. failed is why it could not be read to its end.
func (p composer) drainSource(ctx context.Context, s source.Source, all *composition) (failed, err error) {
	count := 0
	for {
		items, failed := s.Step(ctx)
		if len(items) > 0 {
			if err := all.agent.Handle(ctx, items); err != nil {
				return nil, fmt.Errorf("learning from %s: %w", s.Name(), err)
			}
		}
		count += len(items)
		if err := s.Commit(); err != nil {
			return nil, fmt.Errorf("reading source %s: %w", s.Name(), err)
		}
		if failed != nil {
			p.logger.Warn("a source cannot be read; it is tried again", "source", s.Name(), "error", failed)
		}
		if len(items) == 0 || failed != nil || ctx.Err() != nil {
			p.logger.Info(fmt.Sprintf("source %s: %d new rows or lines", s.Name(), count))
			return failed, ctx.Err()
		}
	}
}

// warnOfTenant says that nothing is learned, as no job is of the tenant of the configuration.
func (p composer) warnOfTenant(all *composition) {
	has, others := all.agent.HasTenant()
	if has {
		return
	}
	there := "no other group or account was read either"
	if len(others) > 0 {
		there = "the rows that were read are of " + strings.Join(others, ", ")
	}
	p.logger.Warn(fmt.Sprintf("no job of tenant %s was seen, so nothing is learned: %s", p.cfg.Tenant, there))
}
