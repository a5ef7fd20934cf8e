package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// mostHosts bounds what a list may stand for, whoever says how many it should be; fewHosts
// is what any list may.
const (
	mostHosts = 65536
	fewHosts  = 256
)

// expandHosts names the hosts of Slurm's list, such as gpu[01-03,7],login. One that stands for
// many more than it should is refused before it is expanded: a few bytes could be millions.
func expandHosts(list string, should int) ([]string, error) {
	most := min(max(should, fewHosts), mostHosts)
	var hosts []string
	for list != "" {
		var item string
		item, list = cutHost(list)
		expanded, err := expandBrackets(item, most)
		if err != nil {
			return nil, fmt.Errorf("host list %.80q: %w", item, err)
		}
		if hosts = append(hosts, expanded...); len(hosts) > most {
			return nil, fmt.Errorf("host list %.80q is too long", item)
		}
	}
	return hosts, nil
}

// cutHost cuts a list at its first comma outside of brackets.
func cutHost(list string) (item, rest string) {
	depth := 0
	for i, r := range list {
		switch {
		case r == '[':
			depth++
		case r == ']':
			depth--
		case r == ',' && depth == 0:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}

// expandBrackets expands the first brackets of an item, and then the others.
func expandBrackets(item string, most int) ([]string, error) {
	open := strings.IndexByte(item, '[')
	if open < 0 {
		return []string{item}, nil
	}
	length := strings.IndexByte(item[open:], ']')
	if length < 0 {
		return nil, errors.New("a bracket is not closed")
	}
	tails, err := expandBrackets(item[open+length+1:], most)
	if err != nil {
		return nil, err
	}
	var hosts []string
	for span := range strings.SplitSeq(item[open+1:open+length], ",") {
		numbers, err := expandSpan(span, most)
		if err != nil {
			return nil, err
		}
		if len(hosts)+len(numbers)*len(tails) > most {
			return nil, fmt.Errorf("stands for more than %d hosts", most)
		}
		for _, number := range numbers {
			for _, tail := range tails {
				hosts = append(hosts, item[:open]+number+tail)
			}
		}
	}
	return hosts, nil
}

// expandSpan expands 08-11, with the zeros that the first number has.
func expandSpan(span string, most int) ([]string, error) {
	first, last, isSpan := strings.Cut(span, "-")
	if !isSpan {
		last = first
	}
	from, errFrom := strconv.Atoi(first)
	to, errTo := strconv.Atoi(last)
	if errFrom != nil || errTo != nil || to < from || to-from >= most {
		return nil, fmt.Errorf("%.40q is not a span of numbers", span)
	}
	var numbers []string
	for n := from; n <= to; n++ {
		numbers = append(numbers, fmt.Sprintf("%0*d", len(first), n))
	}
	return numbers, nil
}
