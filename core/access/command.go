package access

import (
	"slices"
	"strconv"
	"strings"
)

// Shell is the command that opens a shell there; nil: there is no way in.
func (a Address) Shell() []string {
	switch {
	case !a.Enterable():
		return nil
	case a.Kind == Slurm:
		return append(a.step(), "--pty", "bash", "-l")
	case a.Kind == Kubernetes:
		return append(a.exec("-it"), "sh", "-l")
	case a.Kind == Local:
		return []string{"bash", "-l"}
	}
	return a.ssh()
}

// Command is what the words of a command are put after, to run it there; nil: there
// is no way in. Behind ssh a shell reads those words, and they must be quoted for it;
// the other ways hand them on as they are.
func (a Address) Command() []string {
	switch {
	case !a.Enterable():
		return nil
	case a.Kind == Slurm:
		return append(a.step(), "--nodes=1", "--ntasks=1")
	case a.Kind == Kubernetes:
		return a.exec("-i")
	case a.Kind == Local:
		return []string{"env"}
	}
	return a.ssh()
}

// Enterable reports whether there is a way in.
func (a Address) Enterable() bool {
	switch a.Kind {
	case SSH, Kubernetes, Local:
		return true
	case Slurm:
		return a.Job != ""
	}
	return false
}

// Run is the command that runs argv there in an environment, of variables as K=V, or a
// login shell when argv is empty. terminal says whether a person sits before it. It is
// nil if there is no way in.
func (a Address) Run(environment, argv []string, terminal bool) []string {
	words := inside(environment, argv)
	switch {
	case !a.Enterable():
		return nil
	case a.Kind == SSH && terminal:
		return append(slices.Insert(a.ssh(), 1, "-t"), Quote(words))
	case a.Kind == SSH:
		return append(a.ssh(), Quote(words))
	case a.Kind == Slurm && terminal:
		return append(append(a.step(), "--nodes=1", "--ntasks=1", "--pty"), words...)
	case a.Kind == Kubernetes && terminal:
		return append(a.exec("-it"), words...)
	case a.Kind == Local:
		return words
	}
	return append(a.Command(), words...)
}

// inside is what runs there: env sets the variables last, after what a scheduler sets
// for the steps of its jobs.
func inside(environment, argv []string) []string {
	if len(argv) > 0 {
		return slices.Concat([]string{"env"}, environment, argv)
	}
	login := []string{"sh", "-c", `exec env "$@" "${SHELL:-/bin/sh}" -l`, "sh"}
	return append(login, environment...)
}

func (a Address) ssh() []string {
	words := []string{"ssh"}
	if a.Port != 0 {
		words = append(words, "-p", strconv.Itoa(a.Port))
	}
	host := a.Host
	if a.User != "" {
		host = a.User + "@" + host
	}
	return append(words, host)
}

// step joins the job that holds the node's GPUs. Its own step holds a processor, which
// is why the new one overlaps it.
func (a Address) step() []string {
	return []string{"srun", "--jobid=" + a.Job, "--overlap", "--nodelist=" + a.Host}
}

func (a Address) exec(flags string) []string {
	words := []string{"kubectl", "exec", flags, "-n", a.Namespace, a.Pod}
	if a.Container != "" {
		words = append(words, "-c", a.Container)
	}
	return append(words, "--")
}

// Quote writes words as one line that a POSIX shell reads as these words.
func Quote(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = QuoteWord(w)
	}
	return strings.Join(quoted, " ")
}

// QuoteWord is Quote of one word. A word of plain characters stays as it is.
func QuoteWord(w string) string {
	plain := func(c byte) bool { return isLetter(c) || isDigit(c) || strings.IndexByte("-_./:=@%,+", c) >= 0 }
	if w != "" && consistsOf(w, plain) {
		return w
	}
	return SingleQuote(w)
}

// SingleQuote puts a word into quotes in which a POSIX shell reads nothing.
func SingleQuote(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }
