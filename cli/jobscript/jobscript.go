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
)

// Most is how many bytes a script may have: it is a job's input.
const Most = 192 << 10

// Script is a script and what it asks for.
type Script struct {
	// Flags are those of forewarm run, what comes from #FW behind what comes from #SBATCH.
	Flags []string
	// Notes say which flags of Slurm mean nothing here, and what is there instead.
	Notes []string
	// Slurm reports whether any line is for Slurm.
	Slurm bool
	// Input is what the command reads as its standard input: the script itself.
	Input []byte

	interpreter []string
}

// Parse reads a script. getenv is the environment of who submits it, of which --export may name
// variables.
func Parse(text string, getenv func(string) string) (Script, error) {
	s := Script{Input: []byte(text)}
	if err := checkText(text); err != nil {
		return s, err
	}
	var err error
	if s.interpreter, err = parseInterpreter(text); err != nil {
		return s, err
	}
	slurm, own := translation{getenv: getenv}, []string(nil)
	for number, line := range leadingComments(text) {
		words, err := directiveWords(line, "#FW")
		own = append(own, words...)
		if err == nil {
			words, err = directiveWords(line, "#SBATCH")
			s.Slurm = s.Slurm || len(words) > 0
		}
		if err == nil {
			err = slurm.putAll(words)
		}
		if err != nil {
			return s, fmt.Errorf("line %d: %w", number, err)
		}
	}
	s.Flags, s.Notes = append(slurm.finish(), own...), slurm.allNotes()
	return s, nil
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
		return fmt.Errorf("it has %d bytes, and a script may have %d: put what it runs into files on the nodes", len(text),
			Most)
	case strings.Contains(text, "\x00"):
		return errors.New("it is no text: give a program behind --, without --script")
	case strings.Contains(text, "\r\n"):
		return errors.New("its lines end as on Windows, which no shell takes: dos2unix mends that")
	}
	return nil
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

// leadingComments goes through the lines before the first command, counted from 1.
func leadingComments(text string) func(func(int, string) bool) {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.Lines(text) {
			number++
			line = strings.TrimSpace(line)
			if line != "" && line[0] != '#' || !yield(number, line) {
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
