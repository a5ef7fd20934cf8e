package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// titles stand before a surname, and introducers before a person or a customer in messages about work.
const (
	titles = `dr|mr|mrs|ms|mx|prof|professor|sir|herrn?|frau|mme|mlle|monsieur|madame|señora?|signora?|dott|ing|` +
		`pan[ií]|mevrouw|meneer|fru`
	introducers = `patient(?:in)?|customer|contact(?: person)?|co-?author|author|owner|maintainer|assignee|supervisor|` +
		`colleague|employee|student|coworker|researcher|tester|attn|cc|bcc|hi|hello|dear|hallo|thanks|thank you|regards|` +
		`user|assigned to|handed over to|reported by|requested by|approved by|submitted by|owned by|started by|` +
		`launched by|run by|created by|written by|signed by|cancell?ed by|reviewed by|commit by|booked by|on behalf of|` +
		`(?:meeting|call|interview|demo|appointment|workshop|session|sync|lunch) (?:with|for)|kund(?:e|in)|` +
		`autor(?:in)?|` + //nolint:misspell // it is German
		`ansprechpartner(?:in)?|termin mit|besprechung mit|beauftragt von|im auftrag von|` +
		`client[ea]|paciente|paziente|auteur|autora?|autore|réunion avec|rendez-vous avec|reunión con|riunione con|` +
		`reunião com`
	// fields hold a name after a sign, in any case.
	fields = `patient(?:_?name)?|customer(?:_?name)?|contact(?:_?name)?|author|assignee|maintainer|cc|bcc|` +
		`requested_by|submitted_by|created_by|owner_?name|full_?name|first_?name|last_?name|surname|kunde|` +
		`autor` //nolint:misspell // it is German
)

// peopleRules find people after what introduces them, and machines after the word for one.
var peopleRules = []detector{
	newNamesRule("user", titles, `\b(?:`+titles+`)(?:\.|\b)(\s*)`,
		func(rest string) []span { return namesIn(rest, false) }),
	newNamesRule("user", introducers, `\b(?:`+introducers+`)["']?[:=,]?(\s+)`,
		func(rest string) []span { return namesIn(rest, false) }),
	newNamesRule("user", fields, `\b(?:`+fields+`)["']?\s*[:=](\s*)`,
		func(rest string) []span { return namesIn(rest, true) }),
	newNamesRule("host", `nodes?|hosts?|machines?|servers?|hostnames?|rechner|knoten|maschine`,
		`\b(?:nodes?|hosts?|machines?|servers?|hostnames?|rechner|knoten|maschine)(\s+)`, hostsIn),
}

// newNamesRule makes a rule of which the matches begin with one of the words.
func newNamesRule(name, words, pattern string, after func(rest string) []span) detector {
	spelled := listSpellings(`(?:` + words + `)`)
	d := detector{name: name, need: need{nil}, re: regexp.MustCompile(`(?i)` + pattern), after: after,
		starts: wordsAt(isWordEdge, spelled)}
	for _, word := range spelled {
		d.need[0] = append(d.need[0], `\b`+word)
	}
	return d
}

// particles belong to the name that they stand in, and joiners stand between two.
var (
	particles = newWordSet("van von de der den del della di da dos das du la le bin ibn al el zu zum ten ter af av y e")
	joiners   = newWordSet("and und et y e & + or oder with mit /")
)

// noPeople are words with a capital that name nobody: times above all, which forecasts need.
var noPeople = newWordSet("monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu",
	"thur thurs fri sat",
	"sun january february march april may june july august september october november december jan feb mar apr jun jul",
	"aug sep sept oct nov dec utc cet cest gmt pst est am pm noon midnight today tomorrow tonight q1 q2 q3 q4",
	"montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember uhr",
	"lundi mardi mercredi jeudi vendredi samedi dimanche heute morgen",
	"gpu gpus cpu cpus cuda nvidia amd slurm kubernetes api llm ram gb tb node nodes server cluster pool queue the this",
	"that a an i we it is was training train eval evaluation inference sweep job jobs run batch epoch step model data",
	"dataset error info warn warning debug failed id name none null no all a100 h100 h200 b200 v100 l40s for from")

// namesIn returns where the names are with which a text begins; loose takes the first word for one without a capital.
func namesIn(rest string, loose bool) (found []span) {
	open := false // the last word belonged to the name
	for from, to := range wordsOf(rest) {
		s := trimValue(rest, span{from: from, to: to})
		word := strings.TrimRight(rest[s.from:s.to], ".:!?")
		bare := bareWord(word)
		switch {
		case isName(word) || loose && found == nil && isField(word):
			if open {
				found[len(found)-1].to = s.from + len(word)
			} else {
				found = append(found, span{from: s.from, to: s.from + len(word)})
			}
			open = !strings.ContainsAny(rest[s.to:to], ",")
		case found != nil && open && particles[bare]:
		case found != nil && joiners[bare], strings.Contains(word, "@"):
			open = false
		default:
			return found
		}
		if isEndOfName(rest[from:to]) || len(found) > 8 {
			return found
		}
	}
	return found
}

// isEndOfName reports whether a sentence ends with a word, which is no initial and no title.
func isEndOfName(word string) bool { return endsSentence(word) && utf8.RuneCountInString(word) > 4 }

// isName reports whether a word looks like a name of a person or a company.
func isName(word string) bool {
	first, size := utf8.DecodeRuneInString(word)
	if strings.HasPrefix(word, "d'") || strings.HasPrefix(word, "@") {
		first, size = utf8.DecodeRuneInString(word[size:])
	}
	return size > 0 && unicode.IsUpper(first) && !noPeople[bareWord(word)] && !strings.ContainsAny(word, "=/\\[]") &&
		strings.IndexFunc(word, unicode.IsDigit) < 0
}

// isField reports whether a word can be the value of a field for a name.
func isField(word string) bool {
	bare := bareWord(word)
	return utf8.RuneCountInString(bare) > 2 && strings.ContainsFunc(bare, unicode.IsLetter) && !noPeople[bare] &&
		!noNames.MatchString(bare) && !harmlessValue.MatchString(bare) && !strings.ContainsAny(bare, "=/\\<>@")
}

// hostsIn returns where the names of machines are with which a text begins.
func hostsIn(rest string) (found []span) {
	for from, to := range wordsOf(rest) {
		s := trimValue(rest, span{from: from, to: to})
		s.to = s.from + len(strings.TrimRight(rest[s.from:s.to], ".:!?"))
		switch word := rest[s.from:s.to]; {
		case isHost(word):
			found = append(found, s)
		case found != nil && joiners[bareWord(word)]:
		default:
			return found
		}
	}
	return found
}

// hostForm is a word with a digit or a hyphen in it. noHosts are such words that count or tell something of a machine.
var (
	hostForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*[0-9-][A-Za-z0-9._,\[\]-]*$`)
	noHosts  = regexp.MustCompile(`(?i)^(?:(?:rank|gpus?|epoch|step|v|version|gen|type|id|no|num|count|cuda|port|slot|` +
		`pool|group|attempt|try|level|exit|code|signal|status)[._-]?[0-9.]*|(?:re|non|un|auto|pre|post|self|shut|well)-.*|` +
		`[avhlbt][0-9]+|.*-(?:side|local|wide|based|only|level|up|down|ready|hours?|gpus?))$`)
)

func isHost(word string) bool { return hostForm.MatchString(word) && !noHosts.MatchString(word) }
