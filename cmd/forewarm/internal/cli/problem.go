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
	"github.com/forewarm/forewarm/internal/strictyaml"
)

// fromProblem tells a problem in the words of the command line: flags instead of
// fields, and commands to run instead of requests.
func fromProblem(cmd *cobra.Command, p contract.Problem) *Error {
	e := &Error{Exit: exitOf(p), Message: headline(cmd, p), Err: &client.Error{Problem: p}}
	for _, f := range p.Errors {
		if told := fieldText(cmd, f); !strings.Contains(e.Message, told) && !strings.Contains(p.Detail, f.Message) {
			e.Detail = append(e.Detail, told)
		}
	}
	for _, b := range p.Blockers {
		if !strings.Contains(p.Detail, b.Message) && !strings.Contains(e.Message, inWords(b.Message)) {
			e.Detail = append(e.Detail, inWords(b.Message))
		}
	}
	for _, r := range p.AtRisk {
		e.Detail = append(e.Detail, fmt.Sprintf("%s: %d GPUs from %s to %s", r.ID, r.GPUs, stamp(r.Start), stamp(r.End)))
	}
	for _, f := range p.Fixes {
		switch {
		case f.Command != "":
			e.Next = append(e.Next, f.Command)
		case !ofRequests.MatchString(f.Label) && (p.Code != contract.CodeWindowTooLong || cmd.Flags().Lookup("by") == nil):
			e.Detail = append(e.Detail, inWords(f.Label))
		}
	}
	e.Next = append(e.Next, remedies(cmd, p)...)
	if p.RequestID != "" && e.Exit == ExitFailed {
		e.Detail = append(e.Detail, "in the server's log: "+p.RequestID)
	}
	for _, next := range fallback(cmd, e.Exit) {
		if !slices.Contains(e.Next, next) {
			e.Next = append(e.Next, next)
		}
	}
	return e
}

// remedies are the commands that a problem suggests.
func remedies(cmd *cobra.Command, p contract.Problem) []string {
	var next []string
	switch p.Code {
	case contract.CodePromisesAtRisk:
		next = append(next, typedLine(cmd, "--force"))
	case contract.CodeETagMismatch:
		next = append(next, typedLine(cmd))
	case contract.CodeWindowTooLong:
		next = append(next, longestExtension(cmd, p)...)
	}
	for _, f := range p.Errors {
		if list, ok := whereNamed[lastName(f.Pointer)]; ok {
			next = append(next, list)
		}
	}
	for _, o := range p.Offers {
		next = append(next, offerCommand(cmd, o))
	}
	if p.DecisionID != "" {
		next = append(next, "forewarm decisions show "+p.DecisionID)
	}
	return next
}

// longestExtension is how much longer a lease can be made.
func longestExtension(cmd *cobra.Command, p contract.Problem) []string {
	by := cmd.Flags().Lookup("by")
	if by == nil {
		return nil
	}
	asked, err := strictyaml.ParseDuration(by.Value.String())
	rest := asked
	for _, b := range p.Blockers {
		if b.Unit == "seconds" {
			rest = min(rest, asked-time.Duration(b.Asked-b.Limit)*time.Second)
		}
	}
	if err != nil || rest < time.Minute || rest == asked {
		return nil
	}
	return []string{fmt.Sprintf("%s %s --by %s", cmd.CommandPath(), quoted(cmd.Flags().Arg(0)), flagText(rest))}
}

// flagText is a duration as a flag takes it, to the minute below.
func flagText(d time.Duration) string {
	day := 24 * time.Hour
	text := ""
	if n := d / day; n > 0 {
		text = strconv.Itoa(int(n)) + "d"
	}
	if rest := (d % day).Truncate(time.Minute); rest > 0 || text == "" {
		text += short(rest)
	}
	return text
}

// whereNamed are the commands that show what a field could have been.
var whereNamed = map[string]string{"pool": "forewarm pools list", "model": "forewarm pools list",
	"region": "forewarm pools list -o wide", "min_gpu_memory_mib": "forewarm pools list", "min_node_memory_mib": "forewarm pools list -o wide",
	"organization_id": "forewarm orgs list",
	"user_id":         "forewarm users list", "provisioner": "forewarm pools list -o wide"}

// ofRequests recognises advice for those who write requests.
var ofRequests = regexp.MustCompile(`\b(GET|POST|PUT|PATCH|DELETE) /|^(Send|Change|Rename|Add what|Leave it out)\b|Idempotency-Key|If-Match|ETag|Retry-After|force=true|openapi`)

// headline is what happened, in a sentence.
func headline(cmd *cobra.Command, p contract.Problem) string {
	detail := inWords(p.Detail)
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
		if n := cmd.Flags().Arg(0); n != "" {
			return fmt.Sprintf("the name %q is taken", n)
		}
	case contract.CodeWindowTooLong:
		for _, b := range p.Blockers {
			if cmd.Flags().Lookup("by") != nil && strings.Contains(b.Message, "lease") {
				return "The lease would be too long: " + inWords(b.Message)
			}
		}
	case contract.CodeNotFound:
		if what := sought(cmd); what != "" && (detail == "" || strings.HasPrefix(detail, "It does not exist")) {
			return "there is no " + what + ", or your key may not see it"
		}
		return detail
	}
	if detail == "" {
		return p.Title
	}
	return p.Title + ": " + detail
}

// sought is what a command was told to look for.
func sought(cmd *cobra.Command) string {
	words, args := strings.Fields(cmd.Use), cmd.Flags().Args()
	var all []string
	for i, arg := range args {
		if i+1 < len(words) && strings.ToUpper(words[i+1]) == words[i+1] && words[i+1] != "METHOD" && words[i+1] != "PATH" && words[i+1] != "NAME" {
			noun := strings.ReplaceAll(strings.ToLower(strings.Trim(words[i+1], "[]")), "|", " or ")
			all = append(all, fmt.Sprintf("%s %q", noun, arg))
		}
	}
	for _, flag := range sorted(flagNouns) {
		if f := cmd.Flags().Lookup(flag); f != nil && f.Changed {
			all = append(all, fmt.Sprintf("%s %q", strings.ToLower(flagNouns[flag]), f.Value.String()))
		}
	}
	return strings.Join(all, ", or no ")
}

// fieldFlags names the flags of fields that are called otherwise.
var fieldFlags = map[string][]string{
	"lease_seconds": {"for"}, "duration_seconds": {"for"}, "min_duration_seconds": {"for"}, "max_duration_seconds": {"for"}, "by_seconds": {"by"},
	"start": {"at"}, "start_local": {"at"}, "end": {"for"}, "rrule": {"every"}, "timezone": {"tz"}, "exdates": {"skip"}, "dst_policy": {"dst"},
	"gpu_memory_mib": {"memory"}, "min_gpu_memory_mib": {"min-gpu-memory"}, "min_node_memory_mib": {"min-node-memory"},
	"price_per_node_hour": {"price"}, "expires_in_seconds": {"expires"}, "organization_id": {"org"}, "user_id": {"user"},
	"start_time_not_earlier_than": {"not-before"}, "end_time_not_later_than": {"not-after"}, "queue": {"on-full"}, "until": {"until", "for"},
	"from": {"from", "last"}, "to": {"to", "last", "for"}, "step_seconds": {"step"}, "days": {"last"}, "hours": {"hours"}, "amount": {"price", "money"},
}

// flagOf is the flag that a field's value came from; nil when there is none.
func flagOf(cmd *cobra.Command, pointer string) *pflag.Flag {
	parts := strings.Split(strings.Trim(pointer, "/"), "/")
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
	parts := strings.Split(strings.Trim(pointer, "/"), "/")
	for _, part := range slices.Backward(parts) {
		if _, err := strconv.Atoi(part); err != nil {
			return part
		}
	}
	return ""
}

// fieldText says what is wrong with one value, by the name that it has here.
func fieldText(cmd *cobra.Command, f contract.FieldError) string {
	rule := inWords(ruleText(f))
	what := strings.ReplaceAll(lastName(f.Pointer), "_", " ")
	if flag := flagOf(cmd, f.Pointer); flag != nil {
		if what = "--" + flag.Name; flag.Changed && !strings.HasPrefix(rule, `"`) {
			what += " " + quoted(flag.Value.String())
		}
	} else if words := strings.Fields(cmd.Use); len(words) > 1 && strings.EqualFold(words[1], what) && cmd.Flags().NArg() > 0 {
		what += " " + quoted(cmd.Flags().Arg(0))
	}
	rule = strings.NewReplacer("or model must", "or --model must", " after from", "").Replace(rule)
	return strings.TrimSpace(what + " " + rule)
}

var (
	bound    = regexp.MustCompile(`expected number (<=|>=|<|>) (\S+)`)
	choice   = regexp.MustCompile(`expected (?:value|string) to be one of "(.*)"`)
	longest  = regexp.MustCompile(`expected length <= (\d+)`)
	expected = regexp.MustCompile(`^expected (?:string|value|number|array|object|boolean|integer) to be `)
)

// ruleText is the rule that a value breaks, as people say it.
func ruleText(f contract.FieldError) string {
	text := f.Message
	switch {
	case strings.Contains(text, "email"):
		return "must be an e-mail address, such as ada@example.com"
	case strings.Contains(text, "expected required property"), strings.HasPrefix(text, "required "):
		return "is missing"
	case strings.HasPrefix(text, "expected length >= 1"):
		return "must not be empty"
	}
	text = bound.ReplaceAllStringFunc(text, func(m string) string {
		part := bound.FindStringSubmatch(m)
		words := map[string]string{"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
		return "must be " + words[part[1]] + " " + amount(f.Pointer, part[2])
	})
	text = choice.ReplaceAllString(text, "must be one of $1")
	text = longest.ReplaceAllString(text, "must be at most $1 characters long")
	return expected.ReplaceAllString(text, "must be ")
}

// amount is a number as people write one of its kind.
func amount(pointer, number string) string {
	v, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil:
		return number
	case strings.HasSuffix(pointer, "_seconds"):
		return span(v * float64(time.Second)).long()
	case strings.HasSuffix(pointer, "gpu_memory_mib"):
		return strconv.FormatFloat(v/1024, 'f', -1, 64) + " (GiB)"
	default:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
}

var (
	goDuration = regexp.MustCompile(`\b\d+h\d+m\d+(?:\.\d+)?s\b|\b\d+m\d+(?:\.\d+)?s\b`)
	readLists  = regexp.MustCompile(`\bGET /v1/([a-z]+)\b`)
)

// inWords takes out of a text what only those know who write requests.
func inWords(text string) string {
	text = goDuration.ReplaceAllStringFunc(text, func(m string) string {
		d, err := time.ParseDuration(m)
		if err != nil {
			return m
		}
		return span(d).long()
	})
	return readLists.ReplaceAllStringFunc(text, func(m string) string {
		noun := readLists.FindStringSubmatch(m)[1]
		if short, ok := strings.CutPrefix(noun, "organization"); ok {
			noun = "org" + short
		}
		return "forewarm " + noun + " list"
	})
}

// long renders a duration in its two largest units: 7d, 2517d1h, 3m20s.
func (s span) long() string {
	d, day := time.Duration(s), 24*time.Hour
	if d < 2*day {
		return short(d)
	}
	text := strconv.Itoa(int(d/day)) + "d"
	if rest := (d % day).Truncate(time.Hour); rest > 0 {
		text += short(rest)
	}
	return text
}

// typedLine is the command line that was typed, with more flags.
func typedLine(cmd *cobra.Command, more ...string) string {
	line := []string{cmd.CommandPath()}
	for _, arg := range cmd.Flags().Args() {
		line = append(line, quoted(arg))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Value.Type() == "bool" && f.Value.String() == "true":
			line = append(line, "--"+f.Name)
		case f.Value.Type() == "bool":
			line = append(line, "--"+f.Name+"="+f.Value.String())
		default:
			line = append(line, "--"+f.Name, quoted(strings.Trim(f.Value.String(), "[]")))
		}
	})
	return strings.Join(append(line, more...), " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	safe := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_./:@,+=%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !safe(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
