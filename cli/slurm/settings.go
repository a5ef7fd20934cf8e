package slurm

import (
	"strconv"
	"strings"
)

// settings are the keys and values that scontrol shows.
type settings map[string]string

// parseConfig reads what scontrol show config prints: a key and a value a line.
func parseConfig(output string) settings {
	found := settings{}
	for line := range strings.Lines(output) {
		if key, value, ok := strings.Cut(line, "="); ok {
			found[strings.ToLower(strings.TrimSpace(key))] = clean(value)
		}
	}
	return found
}

// parseOneLiners reads what scontrol --oneliner prints: a thing a line, as words
// of the form key=value. A value with spaces keeps its first word, but for the
// last key of a line, such as Reason.
func parseOneLiners(output string) []settings {
	var all []settings
	for line := range strings.Lines(output) {
		one, last := settings{}, ""
		for word := range strings.FieldsSeq(line) {
			key, value, ok := strings.Cut(word, "=")
			switch {
			case ok && isKey(key):
				last = strings.ToLower(key)
				one[last] = clean(value)
			case last == "reason":
				one[last] += " " + word
			}
		}
		if len(one) > 0 {
			all = append(all, one)
		}
	}
	return all
}

func isKey(word string) bool {
	return word != "" && strings.Trim(strings.ToLower(word), "abcdefghijklmnopqrstuvwxyz_/:") == ""
}

// clean is a value without Slurm's words for none.
func clean(value string) string {
	value = strings.TrimSpace(value)
	switch strings.ToLower(value) {
	case "(null)", "none", "n/a":
		return ""
	}
	return value
}

func (s settings) get(key string) string { return s[strings.ToLower(key)] }

// words are the parts of a list.
func (s settings) words(key string) []string {
	return strings.FieldsFunc(strings.ToLower(s.get(key)), func(r rune) bool { return r == ',' || r == '+' || r == ' ' })
}

// number reads a whole number at the beginning of a value: "30 sec" is 30.
func (s settings) number(key string) (int, bool) {
	word, _, _ := strings.Cut(s.get(key), " ")
	n, err := strconv.Atoi(word)
	return n, err == nil
}

// mostSeconds is far beyond any timer of Slurm's.
const mostSeconds = 1 << 31

// seconds reads a time span: "30 sec", "300", or 1-02:03:04. It is false for
// what is not set, INFINITE, or negative.
func (s settings) seconds(key string) (int64, bool) {
	text, _, _ := strings.Cut(s.get(key), " ")
	days, clock, hasDays := strings.Cut(text, "-")
	total := int64(0)
	if !hasDays {
		clock = text
	} else if n, err := strconv.ParseInt(days, 10, 32); err == nil && n >= 0 {
		total = n
	} else {
		return 0, false
	}
	for i, part := range strings.Split(clock, ":") {
		n, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n < 0 {
			return 0, false
		}
		if i == 0 && hasDays {
			total = total*24 + n
		} else {
			total = total*60 + n
		}
	}
	return total, total < mostSeconds
}
