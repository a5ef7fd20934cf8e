package problem

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/cli/flags"
	"github.com/forewarm/forewarm/contract"
)

// fieldFlags names the flags of fields that are called otherwise.
var fieldFlags = map[string][]string{
	"lease_seconds": {"for"}, "duration_seconds": {"for"}, "min_duration_seconds": {"for"},
	"max_duration_seconds": {"for"}, "by_seconds": {"by"},
	"start": {"at"}, "start_local": {"at"}, "end": {"for"}, "rrule": {"every"}, "timezone": {"tz"}, "exdates": {"skip"},
	"dst_policy":     {"dst"},
	"gpu_memory_mib": {"memory"}, "min_gpu_memory_mib": {"min-gpu-memory"}, "min_node_memory_mib": {"min-node-memory"},
	"price_per_node_hour": {"price"}, "expires_in_seconds": {"expires"}, "organization_id": {"org"},
	"user_id":      {"user"},
	"min_duration": {"for"}, "max_duration": {"for"}, "organization": {"org"},
	"start_time_not_earlier_than": {"not-before"}, "end_time_not_later_than": {"not-after"}, "queue": {"on-full"},
	"until": {"until", "for"},
	"from":  {"from", "last"}, "to": {"to", "last", "for"}, "step_seconds": {"step"}, "days": {"last"},
	"hours": {"hours"}, "amount": {"price", "money"},
	"directory": {"dir", "chdir"}, "environment": {"env", "export"}, "dependencies": {"after", "dependency"},
	"job_id": {"after", "dependency"}, "before_seconds": {"checkpoint", "signal"}, "failed": {"retries"},
	"lost": {"retries-lost"}, "constraints": {"constraint"}, "prefers": {"prefer"},
	"tolerations": {"tolerate"}, "excluded_nodes": {"exclude"}, "mounts": {"volume"}, "files": {"file"},
	"pool": {"to-pool", "partition"}, "max_runtime_seconds": {"time"}, "not_before": {"begin"},
	"name": {"job-name"}, "checkpoint": {"signal"}, "reservation_id": {"reservation"},
}

// listPlace is where in a list a value stands.
var listPlace = regexp.MustCompile(`\[\d+\]`)

// snakeCase is how fields are written.
var snakeCase = regexp.MustCompile(`\b(?:gpus|[a-z]+(?:_[a-z]+)+)\b`)

// amongFlags is a word in a list of flags, which is one of them.
var amongFlags = regexp.MustCompile(`(--[a-z-]+, )([a-z]+ or --)`)

// inFlags writes the fields that a text names as the command's flags.
func inFlags(cmd *cobra.Command, text string) string {
	text = snakeCase.ReplaceAllStringFunc(text, func(field string) string {
		kebab := strings.ReplaceAll(field, "_", "-")
		for _, name := range append([]string{kebab, strings.TrimSuffix(kebab, "-seconds")}, fieldFlags[field]...) {
			if cmd.Flags().Lookup(name) != nil {
				return "--" + name
			}
		}
		return field
	})
	return amongFlags.ReplaceAllString(text, "$1--$2")
}

// flagOf is the flag that a field's value came from; nil when there is none. One that was given goes before one that
// could have been.
func flagOf(cmd *cobra.Command, pointer string) *pflag.Flag {
	parts := strings.Split(strings.Trim(listPlace.ReplaceAllString(pointer, ""), "/"), "/")
	slices.Reverse(parts)
	for _, part := range parts {
		kebab := strings.ReplaceAll(part, "_", "-")
		var possible *pflag.Flag
		for _, candidate := range append([]string{kebab, strings.TrimSuffix(kebab, "-seconds")}, fieldFlags[part]...) {
			f := cmd.Flags().Lookup(candidate)
			switch {
			case f == nil:
			case f.Changed:
				return f
			case possible == nil && part == parts[0]:
				possible = f
			}
		}
		if possible != nil {
			return possible
		}
	}
	return nil
}

// lastName is the last part of a pointer that is a name.
func lastName(pointer string) string {
	parts := strings.Split(strings.Trim(listPlace.ReplaceAllString(pointer, ""), "/"), "/")
	for _, part := range slices.Backward(parts) {
		if _, err := strconv.Atoi(part); err != nil {
			return part
		}
	}
	return ""
}

// FieldText says what is wrong with one value, by the name that it has here.
func FieldText(cmd *cobra.Command, f contract.FieldError) string {
	flag := flagOf(cmd, f.Pointer)
	rule := inFlags(cmd, InWords(ruleText(f, flag)))
	what := strings.ReplaceAll(lastName(f.Pointer), "_", " ")
	if flag != nil {
		switch what = "--" + flag.Name; {
		case f.Code == CodeUnknown: // the rule is a sentence of its own, and names the value
			what += ":"
		case flag.Changed && !strings.HasPrefix(rule, `"`) && !strings.Contains(rule, "; got ") &&
			!strings.Contains(rule, ", not \""):
			what += " " + flags.Quote(valueAt(flag, f.Pointer))
		}
	} else if words := strings.Fields(cmd.Use); len(words) > 1 && strings.EqualFold(words[1], what) &&
		cmd.Flags().NArg() > 0 {
		what += " " + flags.Quote(cmd.Flags().Arg(0))
	} else if f.Code == CodeUnknown && what != "" {
		what += ":"
	}
	return strings.TrimSpace(what + " " + afterFrom(cmd, rule))
}

// valueAt is the value of a flag at the place that a pointer names, or all of them.
func valueAt(flag *pflag.Flag, pointer string) string {
	list, ok := flag.Value.(pflag.SliceValue)
	if place := listPlace.FindString(pointer); ok && place != "" {
		values := list.GetSlice()
		if i, err := strconv.Atoi(strings.Trim(place, "[]")); err == nil && i < len(values) {
			return values[i]
		}
	}
	if ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return flag.Value.String()
}

// afterFrom says "from" as the flag that it is. A length is counted from there
// in any case, so that only "must be after from" is left to say.
func afterFrom(cmd *cobra.Command, rule string) string {
	if rule == "must be after from" && cmd.Flags().Lookup("from") != nil {
		return "must be after --from"
	}
	return strings.ReplaceAll(rule, " after from", "")
}

// ruleText is the rule that a value breaks. Times, and memory but of flags that
// say otherwise, are given to a flag in other units than to a field.
func ruleText(f contract.FieldError, flag *pflag.Flag) string {
	words := map[string]string{"minimum": "must be at least ", "maximum": "must be at most "}[f.Code]
	switch {
	case f.Limit == nil || words == "":
		return f.Message
	case f.Unit == contract.UnitSeconds:
		return words + flags.Span(*f.Limit*float64(time.Second)).LongText()
	case f.Unit == contract.UnitMiB && flag != nil && !strings.HasSuffix(flag.Name, "-mib"):
		return words + strconv.FormatFloat(*f.Limit/1024, 'f', -1, 64) + " (GiB)"
	}
	return f.Message
}

var goDuration = regexp.MustCompile(`\b\d+h\d+m\d+(?:\.\d+)?s\b|\b\d+m\d+(?:\.\d+)?s\b`)

// InWords writes the durations of a text as flags take them.
func InWords(text string) string {
	return goDuration.ReplaceAllStringFunc(text, func(m string) string {
		d, err := time.ParseDuration(m)
		if err != nil {
			return m
		}
		return flags.Span(d).LongText()
	})
}
