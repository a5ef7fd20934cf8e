package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/forewarm/forewarm/client"
	"github.com/forewarm/forewarm/contract"
)

// fromProblem tells a problem in the words of the command line: flags instead of
// fields, and commands to run instead of requests.
func fromProblem(cmd *cobra.Command, p contract.Problem) *Error {
	e := &Error{Exit: exitOf(p), Message: problemHeadline(cmd, p), Err: &client.Error{Problem: p}}
	for _, f := range p.Errors {
		if told := fieldText(cmd, f); !strings.Contains(e.Message, told) && !strings.Contains(p.Detail, f.Message) {
			e.Detail = append(e.Detail, told)
		}
	}
	for _, b := range p.Blockers {
		if !strings.Contains(p.Detail, b.Message) && !strings.Contains(e.Message, inWords(b.Message)) {
			e.Detail = append(e.Detail, inFlags(cmd, inWords(b.Message)))
		}
	}
	for _, r := range p.AtRisk {
		e.Detail = append(e.Detail, fmt.Sprintf("%s: %s from %s to %s", r.ID, formatCount(r.GPUs, "GPU"), formatTime(r.Start),
			formatTime(r.End)))
	}
	if p.Code == contract.CodePlanStale {
		for _, o := range p.Offers {
			e.Detail = append(e.Detail, "there would be a place for "+offerText(o))
		}
	}
	for _, f := range p.Fixes {
		if !f.Request && (p.Code != contract.CodeWindowTooLong || cmd.Flags().Lookup("by") == nil) {
			e.addFix(cmd, f)
		}
	}
	e.Next = append(e.Next, remedyCommands(cmd, p)...)
	if p.RequestID != "" && e.Exit == ExitFailed {
		e.Detail = append(e.Detail, "in the server's log: "+p.RequestID)
	}
	for _, next := range fallbackCommands(cmd, e.Exit, p.Code) {
		if !slices.Contains(e.Next, next) {
			e.Next = append(e.Next, next)
		}
	}
	return e
}

// addFix adds a way out: a command to run, the same one with other flags, or words.
func (e *Error) addFix(cmd *cobra.Command, f contract.Fix) {
	switch line := typedWith(cmd, f.Set); {
	case f.Command != "":
		e.Next = append(e.Next, f.Command)
	case line != "":
		e.Next = append(e.Next, line)
		fallthrough
	default:
		e.Detail = append(e.Detail, inFlags(cmd, inWords(f.Label)))
	}
}

// remedyCommands are the commands that a problem suggests.
func remedyCommands(cmd *cobra.Command, p contract.Problem) []string {
	var next []string
	switch p.Code {
	case contract.CodeETagMismatch:
		next = append(next, typedLine(cmd))
	case contract.CodeKeyCapExceeded, contract.CodeUserCapExceeded:
		next = append(next, "forewarm whoami")
	}
	for _, f := range p.Errors {
		if list, ok := whereNamed[lastName(f.Pointer)]; ok {
			next = append(next, list)
		}
	}
	switch {
	case cmd.Flags().Lookup("by") != nil:
		next = append(next, longestExtension(cmd, p)...)
	case p.Code != contract.CodePlanStale: // whose request is not in the command
		next = append(next, offerCommands(cmd, p.Offers)...)
	}
	if p.DecisionID != "" {
		next = append(next, "forewarm decisions show "+p.DecisionID)
	}
	return next
}

// longestExtension is by how much a lease can be made longer, as the server offers.
func longestExtension(cmd *cobra.Command, p contract.Problem) []string {
	for _, o := range p.Offers {
		if by := o.End.Sub(o.Start); by >= time.Minute {
			return []string{fmt.Sprintf("%s %s --by %s", cmd.CommandPath(), shellQuote(cmd.Flags().Arg(0)), flagText(by))}
		}
	}
	return nil
}

// flagText is a duration as a flag takes it, to the minute below.
func flagText(d time.Duration) string {
	day := 24 * time.Hour
	text := ""
	if n := d / day; n > 0 {
		text = strconv.Itoa(int(n)) + "d"
	}
	if rest := (d % day).Truncate(time.Minute); rest > 0 || text == "" {
		text += formatDuration(rest)
	}
	return text
}

// whereNamed are the commands that show what a field could have been.
var whereNamed = map[string]string{"pool": "forewarm pools list", "model": "forewarm pools list",
	"region": "forewarm pools list -o wide", "min_gpu_memory_mib": "forewarm pools list",
	"min_node_memory_mib": "forewarm pools list -o wide",
	"organization_id":     "forewarm orgs list",
	"organization":        "forewarm orgs list", "user": "forewarm users list", "node": "forewarm nodes list",
	"user_id": "forewarm users list", "provisioner": "forewarm pools list -o wide"}

// problemHeadline is what happened, in a sentence.
func problemHeadline(cmd *cobra.Command, p contract.Problem) string {
	detail := inFlags(cmd, inWords(p.Detail))
	switch p.Code {
	case "":
		return "what answers there is not Forewarm, or something in front of it is broken"
	case contract.CodeValidationFailed, contract.CodeInvalidParameter:
		if len(p.Errors) > 0 {
			return fieldText(cmd, p.Errors[0])
		}
	case contract.CodeWindowInPast, contract.CodeMalformedJSON:
		return detail
	case contract.CodeETagMismatch:
		return "somebody else changed it meanwhile; nothing was done"
	case contract.CodeIdempotencyKeyReused:
		return "--idempotency-key was used before, for something else"
	case contract.CodeNameTaken:
		if n := cmd.Flags().Arg(0); n != "" && !strings.Contains(detail, n) {
			return fmt.Sprintf("the name %q is taken", n)
		}
	case contract.CodeWindowTooLong:
		for _, b := range p.Blockers {
			if cmd.Flags().Lookup("by") != nil && strings.Contains(b.Message, "lease") {
				return "The lease would be too long: " + inWords(b.Message)
			}
		}
	case contract.CodeNotFound:
		if what := missingThing(cmd); what != "" && (detail == "" || strings.HasPrefix(detail, "It does not exist")) {
			return "There is no " + what + "."
		}
		return detail
	}
	if detail == "" {
		return p.Title
	}
	return p.Title + ": " + detail
}

// missingThing is what a command was told to look for.
func missingThing(cmd *cobra.Command) string {
	words, args := strings.Fields(cmd.Use), cmd.Flags().Args()
	var all []string
	for i, arg := range args {
		if i+1 < len(words) && strings.ToUpper(words[i+1]) == words[i+1] && words[i+1] != "METHOD" &&
			words[i+1] != "PATH" && words[i+1] != "NAME" {
			noun := strings.ReplaceAll(strings.ToLower(strings.Trim(words[i+1], "[]")), "|", " or ")
			all = append(all, fmt.Sprintf("%s %q", noun, arg))
		}
	}
	for _, flag := range sortedKeys(flagNouns) {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			all = append(all, fmt.Sprintf("%s %q", strings.ToLower(flagNouns[flag]), f.Value.String()))
		}
	}
	return strings.Join(all, ", or no ")
}

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

// flagOf is the flag that a field's value came from; nil when there is none.
func flagOf(cmd *cobra.Command, pointer string) *pflag.Flag {
	parts := strings.Split(strings.Trim(listPlace.ReplaceAllString(pointer, ""), "/"), "/")
	slices.Reverse(parts)
	for _, part := range parts {
		kebab := strings.ReplaceAll(part, "_", "-")
		for _, candidate := range append([]string{kebab, strings.TrimSuffix(kebab, "-seconds")}, fieldFlags[part]...) {
			if f := cmd.Flags().Lookup(candidate); f != nil && (f.Changed || part == parts[0]) {
				return f
			}
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

// fieldText says what is wrong with one value, by the name that it has here.
func fieldText(cmd *cobra.Command, f contract.FieldError) string {
	flag := flagOf(cmd, f.Pointer)
	rule := inFlags(cmd, inWords(ruleText(f, flag)))
	what := strings.ReplaceAll(lastName(f.Pointer), "_", " ")
	if flag != nil {
		switch what = "--" + flag.Name; {
		case f.Code == codeUnknown: // the rule is a sentence of its own, and names the value
			what += ":"
		case flag.Changed && !strings.HasPrefix(rule, `"`) && !strings.Contains(rule, "; got ") &&
			!strings.Contains(rule, ", not \""):
			what += " " + shellQuote(strings.Trim(flag.Value.String(), "[]"))
		}
	} else if words := strings.Fields(cmd.Use); len(words) > 1 && strings.EqualFold(words[1], what) &&
		cmd.Flags().NArg() > 0 {
		what += " " + shellQuote(cmd.Flags().Arg(0))
	}
	return strings.TrimSpace(what + " " + strings.ReplaceAll(rule, " after from", ""))
}

// ruleText is the rule that a value breaks. Times, and memory but of flags that
// say otherwise, are given to a flag in other units than to a field.
func ruleText(f contract.FieldError, flag *pflag.Flag) string {
	words := map[string]string{"minimum": "must be at least ", "maximum": "must be at most "}[f.Code]
	switch {
	case f.Limit == nil || words == "":
		return f.Message
	case f.Unit == contract.UnitSeconds:
		return words + span(*f.Limit*float64(time.Second)).longText()
	case f.Unit == contract.UnitMiB && flag != nil && !strings.HasSuffix(flag.Name, "-mib"):
		return words + strconv.FormatFloat(*f.Limit/1024, 'f', -1, 64) + " (GiB)"
	}
	return f.Message
}

var goDuration = regexp.MustCompile(`\b\d+h\d+m\d+(?:\.\d+)?s\b|\b\d+m\d+(?:\.\d+)?s\b`)

// inWords writes the durations of a text as flags take them.
func inWords(text string) string {
	return goDuration.ReplaceAllStringFunc(text, func(m string) string {
		d, err := time.ParseDuration(m)
		if err != nil {
			return m
		}
		return span(d).longText()
	})
}

// longText renders a duration in its two largest units: 7d, 2517d1h, 3m20s.
func (s span) longText() string {
	d, day := time.Duration(s), 24*time.Hour
	if d < 2*day {
		return formatDuration(d)
	}
	text := strconv.Itoa(int(d/day)) + "d"
	if rest := (d % day).Truncate(time.Hour); rest > 0 {
		text += formatDuration(rest)
	}
	return text
}

// typedLine is the command line that was typed, without some of its flags.
func typedLine(cmd *cobra.Command, without ...string) string {
	line := []string{cmd.CommandPath()}
	for _, arg := range cmd.Flags().Args() {
		line = append(line, shellQuote(arg))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			line = append(line, flagWords(f, strings.Trim(f.Value.String(), "[]")))
		}
	})
	return strings.Join(line, " ")
}

// typedWith is the command line that was typed with other values of some fields;
// empty when there are none, or not all of them have flags.
func typedWith(cmd *cobra.Command, set map[string]any) string {
	var names, words []string
	for _, field := range sortedKeys(set) {
		f := cmd.Flags().Lookup(strings.ReplaceAll(field, "_", "-"))
		if f == nil {
			return ""
		}
		names, words = append(names, f.Name), append(words, flagWords(f, fmt.Sprint(set[field])))
	}
	if len(words) == 0 {
		return ""
	}
	return typedLine(cmd, names...) + " " + strings.Join(words, " ")
}

// flagWords gives a flag a value.
func flagWords(f *pflag.Flag, value string) string {
	switch {
	case f.Value.Type() == "bool" && value == "true":
		return "--" + f.Name
	case f.Value.Type() == "bool":
		return "--" + f.Name + "=" + value
	default:
		return "--" + f.Name + " " + shellQuote(value)
	}
}

// shellQuote is a word as a shell takes it.
func shellQuote(word string) string {
	safe := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@,+=%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
