package jobs

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/forewarm/forewarm/contract"
)

// mostIndices is how many jobs an array may have.
const mostIndices = 10_000

// parseArray reads what Slurm does: indices and ranges with commas between them, as in 0-9:2,15,20-29, and behind % how
// many run at once.
func parseArray(text string) (*contract.JobArray, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none was asked for
	}
	list, limit, limited := strings.Cut(text, "%")
	out := &contract.JobArray{}
	if limited {
		if err := parseIndex(limit, &out.Limit); err != nil || out.Limit < 1 {
			return nil, wrongUse("--array %s: write behind %% how many run at once, as in 0-99%%4", text)
		}
	}
	parts := strings.Split(list, ",")
	for _, part := range parts {
		span, err := parseSpan(part)
		switch {
		case err != nil:
			return nil, wrongUse("--array %s: write indices and ranges, as in 0-99 or 0-98:2,150,200-209%%4", text)
		case len(parts) == 1:
			out.First, out.Last, out.Step = span.First, span.Last, span.Step
			return out, nil
		}
		for i := span.First; i <= span.Last; i += max(span.Step, 1) {
			if out.Indices = append(out.Indices, i); len(out.Indices) > mostIndices {
				return nil, wrongUse("--array %s: an array may have %d jobs", text, mostIndices)
			}
		}
	}
	slices.Sort(out.Indices)
	out.Indices = slices.Compact(out.Indices)
	return out, nil
}

// parseSpan reads FIRST-LAST, FIRST-LAST:STEP or one index.
func parseSpan(text string) (out contract.JobArray, err error) {
	span, step, stepped := strings.Cut(text, ":")
	first, last, ranged := strings.Cut(span, "-")
	if !ranged {
		last = first
	}
	err = errors.Join(parseIndex(first, &out.First), parseIndex(last, &out.Last))
	if stepped {
		err = errors.Join(err, parseIndex(step, &out.Step))
	}
	if err == nil && (stepped && out.Step < 1 || out.Last < out.First) {
		err = errors.New("it has no index")
	}
	return out, err
}

func parseIndex(text string, to *int) error {
	n, err := strconv.ParseUint(text, 10, 31)
	*to = int(n) //nolint:gosec // 31 bits
	return err
}
