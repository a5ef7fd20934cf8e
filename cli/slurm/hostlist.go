package slurm

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// mostHosts bounds what a list may stand for: no cluster has more nodes.
const mostHosts = 100_000

var errHostlist = errors.New("this is no list of hosts")

// expandHosts returns the hosts of a list as Slurm writes it, such as
// c[1-3,07-08],login or r[1-2]n[1-2].
func expandHosts(list string) ([]string, error) {
	var all []string
	for _, item := range splitOutside(list) {
		hosts, err := expandItem(item)
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w", list, err)
		}
		if all = append(all, hosts...); len(all) > mostHosts {
			return nil, fmt.Errorf("%.60q: %w: it has more than %d", list, errHostlist, mostHosts)
		}
	}
	return all, nil
}

// splitOutside splits at the commas outside of brackets.
func splitOutside(list string) []string {
	depth := 0
	return strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		}
		return r == ',' && depth == 0
	})
}

// expandItem expands the first bracket of an item, and then the rest.
func expandItem(item string) ([]string, error) {
	before, rest, bracketed := strings.Cut(item, "[")
	if !bracketed {
		if strings.ContainsAny(item, "] ") {
			return nil, errHostlist
		}
		return []string{item}, nil
	}
	inside, after, closed := strings.Cut(rest, "]")
	if !closed {
		return nil, errHostlist
	}
	tails, err := expandItem(after)
	if err != nil {
		return nil, err
	}
	var all []string
	for part := range strings.SplitSeq(inside, ",") {
		numbers, err := expandRange(part)
		if err != nil || len(all)+len(numbers)*len(tails) > mostHosts {
			return nil, errHostlist
		}
		for _, n := range numbers {
			for _, tail := range tails {
				all = append(all, before+n+tail)
			}
		}
	}
	return all, nil
}

// expandRange returns the numbers of 3 or 07-12, with the zeros before them.
func expandRange(part string) ([]string, error) {
	low, high, isRange := strings.Cut(part, "-")
	if !isRange {
		high = low
	}
	first, err1 := strconv.ParseUint(low, 10, 32)
	last, err2 := strconv.ParseUint(high, 10, 32)
	if err1 != nil || err2 != nil || last < first || last-first >= mostHosts {
		return nil, errHostlist
	}
	var all []string
	for n := first; n <= last; n++ {
		all = append(all, fmt.Sprintf("%0*d", len(low), n))
	}
	return all, nil
}
