package jobscript

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Flag is a flag of sbatch as it was given.
type Flag struct{ Long, Value string }

// FlagKind is a flag of sbatch, as its command line is to know it.
type FlagKind struct {
	Long, Short string
	Bare        bool   // it takes no value
	Optional    bool   // it takes a value only behind =
	Usage       string // what becomes of it; empty: it is ignored with a note, or refused
}

// Flags are all flags of sbatch that Forewarm knows, also those that it ignores or refuses by name.
func Flags() []FlagKind {
	all := make([]FlagKind, len(sbatchFlags))
	for i, f := range sbatchFlags {
		all[i] = FlagKind{Long: f.long, Short: f.short, Bare: f.bare, Optional: f.optional, Usage: f.usage}
	}
	return all
}

// Submission is what sbatch does itself, beside what it says of the job.
type Submission struct {
	Wait, Parsable, TestOnly, Quiet, Append bool
	Output, Error                           string // patterns of files
	Wrap                                    string
}

// sbatchFlag is a flag of sbatch. What is not among them is refused by name.
type sbatchFlag struct {
	long  string
	short string
	bare  bool // it takes no value
	// optional says that it takes a value only behind =.
	optional bool
	usage    string
	put      func(t *translation, value string) error
}

// given is a flag with its value, and where it stands.
type given struct {
	flag  sbatchFlag
	value string
	line  int // 0: on the command line
}

// readLine reads the flags of a line.
func readLine(words []string, line int) (all []given, err error) {
	for len(words) > 0 {
		g := given{line: line}
		if g.flag, g.value, words, err = nextFlag(words); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// nextFlag takes a flag and its value from the front of words.
func nextFlag(words []string) (flag sbatchFlag, value string, rest []string, err error) {
	word, rest := words[0], words[1:]
	name, long := strings.CutPrefix(word, "--")
	name, value, given := strings.Cut(name, "=")
	if !long && len(word) > 1 {
		name, value = word[1:2], strings.TrimPrefix(word[2:], "=")
		given = value != ""
	}
	at := slices.IndexFunc(sbatchFlags, func(f sbatchFlag) bool {
		return long && name == f.long || !long && name == f.short && name != ""
	})
	switch {
	case !strings.HasPrefix(word, "-"):
		return flag, "", nil, fmt.Errorf("%q is no flag", word)
	case at < 0:
		return flag, "", nil, fmt.Errorf("forewarm does not know %s of #SBATCH: take it out, or say what it is for "+
			"by a flag of forewarm run in a line #FW", strings.SplitN(word, "=", 2)[0])
	case sbatchFlags[at].bare && given:
		return flag, "", nil, fmt.Errorf("--%s takes no value", sbatchFlags[at].long)
	case !sbatchFlags[at].bare && !sbatchFlags[at].optional && !given:
		if len(rest) == 0 {
			return flag, "", nil, fmt.Errorf("--%s needs a value", sbatchFlags[at].long)
		}
		value, rest = rest[0], rest[1:]
	}
	return sbatchFlags[at], value, rest, nil
}

// fromCommandLine are flags as a command line had them.
func fromCommandLine(flags []Flag) (all []given) {
	for _, f := range flags {
		at := slices.IndexFunc(sbatchFlags, func(x sbatchFlag) bool { return x.long == f.Long })
		if at >= 0 {
			all = append(all, given{flag: sbatchFlags[at], value: f.Value})
		}
	}
	return all
}

// alternatives are flags of which one on the command line takes the place of all in a script.
var alternatives = [][]string{{"gpus", "gpus-per-node", "gpus-per-task", "gres"}, {"mem", "mem-per-cpu", "mem-per-gpu"},
	{"requeue", "no-requeue"}}

// merge is what a script says and its command line does not, and behind it what that says, as in Slurm.
func merge(script, line []given) []given {
	replaced := map[string]bool{}
	for _, g := range line {
		replaced[g.flag.long] = true
		for _, group := range alternatives {
			if slices.Contains(group, g.flag.long) {
				for _, long := range group {
					replaced[long] = true
				}
			}
		}
	}
	kept := slices.DeleteFunc(slices.Clone(script), func(g given) bool { return replaced[g.flag.long] })
	return slices.Concat(kept, line)
}

// becomes is a flag with the same value under another name.
func becomes(flag string) func(*translation, string) error {
	return func(t *translation, value string) error {
		t.put(flag, value)
		return nil
	}
}

// means is a flag that stands for one word.
func means(word string) func(*translation, string) error {
	return func(t *translation, _ string) error {
		t.add(word)
		return nil
	}
}

// ignored is a flag that changes nothing here; instead says why.
func ignored(instead string) func(*translation, string) error {
	return func(t *translation, _ string) error {
		t.leaveOut(instead)
		return nil
	}
}

// refused is a flag that would change what runs, and cannot be had; instead says what can.
func refused(instead string) func(*translation, string) error {
	return func(*translation, string) error { return errors.New("it cannot be had: " + instead) }
}

// submits is a flag of what sbatch does itself. Where another command submits, otherwise becomes of it.
func submits(set func(*Submission, string), otherwise func(*translation, string) error) func(*translation,
	string) error {
	return func(t *translation, value string) error {
		if t.submission == nil {
			return otherwise(t, value)
		}
		set(t.submission, value)
		return nil
	}
}
