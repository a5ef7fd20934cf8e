// Package jobscript reads what the script of a job says of itself in its first lines: those that
// begin with #FW have flags of forewarm run, those that begin with #SBATCH have flags of Slurm's
// sbatch, which are put into those of forewarm run.
package jobscript

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Most is how many bytes a script may have: it is a job's input.
const Most = 192 << 10

// Script is a script and what it asks for.
type Script struct {
	// Flags are those of forewarm run, what comes from #FW behind what comes from #SBATCH.
	Flags []string
	// Notes say which flags of Slurm mean nothing here, and what is there instead.
	Notes []string
	// Slurm reports whether it is for Slurm, by any of its lines or by who submits it.
	Slurm bool
	// Submission is what sbatch itself is to do.
	Submission Submission
	// Input is what the command reads as its standard input: the script itself, behind functions that stand for
	// programs of Slurm.
	Input []byte

	interpreter []string
}

// Reader reads scripts.
type Reader struct {
	// Getenv is the environment of who submits, of which --export may name variables.
	Getenv func(string) string
	// Sbatch says that what sbatch does itself, such as to wait, is done.
	Sbatch bool
	// Given are flags of sbatch from its command line, which count before those of the script.
	Given []Flag
}

// Read reads a script.
func (r Reader) Read(text string) (Script, error) {
	s := Script{Input: []byte(text)}
	if err := checkText(text); err != nil {
		return s, err
	}
	var err error
	if s.interpreter, err = parseInterpreter(text); err != nil {
		return s, err
	}
	said, own, notes, err := readDirectives(text)
	if err != nil {
		return s, err
	}
	slurm := translation{getenv: r.Getenv}
	if r.Sbatch {
		slurm.submission = &s.Submission
	}
	if err := slurm.putAll(merge(said, fromCommandLine(r.Given))); err != nil {
		return s, err
	}
	if err := slurm.finish(); err != nil {
		return s, err
	}
	s.Slurm = len(said) > 0 || r.Sbatch
	s.Flags, s.Notes = slices.Concat(slurm.flags, own, slurm.last), append(notes, slurm.allNotes()...)
	if s.Slurm {
		s.Input = []byte(prelude + text)
	}
	if len(s.Input) > Most {
		return s, errTooLong(len(text))
	}
	return s, nil
}

// readDirectives reads what the first lines say: to Slurm, and to Forewarm. As for sbatch, nothing is before #SBATCH.
func readDirectives(text string) (slurm []given, own, notes []string, err error) {
	for number, line := range leadingComments(text) {
		trimmed := strings.TrimSpace(line)
		if line[0] != '#' && strings.HasPrefix(trimmed, "#SBATCH") {
			notes = append(notes, fmt.Sprintf("line %d: it does not count, as blanks before #SBATCH make it a comment",
				number))
			continue
		}
		words, err := directiveWords(trimmed, "#FW")
		own = append(own, words...)
		if err == nil {
			words, err = directiveWords(trimmed, "#SBATCH")
		}
		said, wrong := readLine(words, number)
		if err = errors.Join(err, wrong); err != nil {
			return nil, nil, nil, fmt.Errorf("line %d: %w", number, err)
		}
		slurm = append(slurm, said...)
	}
	return slurm, own, notes, nil
}

// Command runs the script by its own interpreter, which reads all of Input before it runs anything
// of it: no file has to be where the job runs, and what the script runs reads nothing of the rest.
// name is its $0.
func (s Script) Command(name string, args []string) []string {
	return slices.Concat(s.interpreter, []string{"-c", `eval "$(cat)"`, name}, args)
}

func checkText(text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return errors.New("it is empty")
	case len(text) > Most:
		return errTooLong(len(text))
	case strings.Contains(text, "\x00"):
		return errors.New("it is no text: give a program behind --, without --script")
	case strings.Contains(text, "\r\n"):
		return errors.New("its lines end as on Windows, which no shell takes: dos2unix mends that")
	}
	return nil
}

func errTooLong(n int) error {
	return fmt.Errorf("it has %d bytes, and a script may have %d, and of Slurm %d: put what it runs into files of nodes",
		n, Most, Most-len(prelude))
}

// shells are the interpreters that take commands behind -c, and then $0.
var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh"}

// parseInterpreter is what the first line names, else sh.
func parseInterpreter(text string) ([]string, error) {
	first, _, _ := strings.Cut(text, "\n")
	line, ok := strings.CutPrefix(first, "#!")
	if !ok {
		return []string{"/bin/sh"}, nil
	}
	words := strings.Fields(line)
	program := words
	if len(words) > 0 && path.Base(words[0]) == "env" {
		program = words[1:]
		if len(program) > 0 && program[0] == "-S" {
			program = program[1:]
			words = slices.Concat(words[:1], program)
		}
	}
	if len(program) == 0 || !slices.Contains(shells, path.Base(program[0])) {
		return nil, fmt.Errorf("line 1: %s is none of the shells that scripts are handed to (%s): name the program "+
			"itself behind --, as in forewarm run -- python3 train.py, with a file that is on the nodes", first,
			strings.Join(shells, ", "))
	}
	return words, nil
}

// leadingComments goes through the lines before the first command, as they are, counted from 1.
func leadingComments(text string) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.Lines(text) {
			number++
			text := strings.TrimSpace(line)
			if text != "" && text[0] != '#' || !yield(number, line) {
				return
			}
		}
	}
}

// directiveWords are the words of a line that begins with a keyword; none: it does not.
func directiveWords(line, keyword string) ([]string, error) {
	rest, ok := strings.CutPrefix(line, keyword)
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return nil, nil
	}
	if !utf8.ValidString(rest) {
		return nil, fmt.Errorf("%+q is not UTF-8, and would not arrive as it is; what follows these lines may be any bytes",
			rest)
	}
	return splitWords(rest)
}

// splitWords splits a line as a shell does that knows quotes and nothing else. A word that begins
// with # ends it.
func splitWords(line string) (words []string, err error) {
	var word []rune
	var quote rune
	begun, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word, escaped = append(word, r), false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word = append(word, r)
		case r == '\'' || r == '"':
			begun, quote = true, r
		case r == ' ' || r == '\t':
			if begun {
				words = append(words, string(word))
			}
			word, begun = nil, false
		case r == '#' && !begun:
			return words, nil
		default:
			word, begun = append(word, r), true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("a quote in it has no end")
	}
	if begun {
		words = append(words, string(word))
	}
	return words, nil
}
