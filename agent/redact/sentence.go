package redact

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sentenceWords is how many words after the name of a secret are looked at.
const sentenceWords = 16

// wordSet is a set of words as they read once a line is plain, in small letters.
type wordSet map[string]bool

func newWordSet(texts ...string) wordSet {
	s := wordSet{}
	for _, text := range texts {
		for _, word := range strings.Fields(text) {
			s[strings.ToLower(toPlainText(word))] = true
		}
	}
	return s
}

var (
	// copulas stand before a value.
	copulas = newWordSet("is was are be been being becomes became equals reads = : := => - -> →",
		"it's that's there's isn't c'est being",
		"ist war sind lautet lautete heißt wird wurde est était sera devient été es era será sea è era sarà",
		"e é foi será fica jest był będzie är var blir er is was wordt werd oli je byl lesz volt",
		"это будет стал")
	// changes are verbs that may be followed by a direction and the value.
	changes = newWordSet("set reset change changed changing updated update rotated modified switched renamed now",
		"geändert gesetzt geaendert zurückgesetzt aktualisiert changé modifié mis cambiada cambiado actualizada",
		"cambiata cambiato modificata impostata alterada alterado mudada mudou gewijzigd veranderd zmieniono",
		"zmienione ändrat ändrades endret ændret изменен изменён сменен сменили")
	directions = newWordSet("to as into with auf zu in en à a para por su naar op na til till på на")
	// times are adverbs of time and manner, which stand between a name and its value.
	times = newWordSet("i think guess believe suppose maybe probably perhaps apparently please",
		"glaube denke wohl vielleicht",
		"bitte used",
		"today tonight tomorrow yesterday now currently current presently still again already also just",
		"only simply always temporarily really actually successfully twice once here there then henceforth instead",
		"heute jetzt morgen gestern nun aktuell derzeit momentan zurzeit noch wieder immer ab sofort nur auch erneut",
		"aujourd'hui maintenant actuellement désormais toujours encore demain hoy ahora actualmente todavía mañana",
		"oggi ora adesso attualmente ancora sempre domani hoje agora atualmente ainda sempre amanhã",
		"vandaag nu momenteel nog altijd morgen dziś dzisiaj teraz obecnie nadal idag nu fortfarande i dag nå nå nyt",
		"tänään dnes teď nyní most сегодня теперь сейчас пока теперь")
	// bridges are articles and prepositions, which do not belong to a value.
	bridges = newWordSet("the a an our my your their this that these for on of in at by from under via since until after",
		"before and or but if so because which who it we i you he she they with to as per",
		"der die das den dem des ein eine für auf im am von vom bei mit und oder aber zu zum zur seit bis",
		"le la les un une pour sur de du des dans et ou mais avec depuis el los las una para en y o pero con desde",
		"il lo gli per su di del della nel e ma o os as um uma no na do da em het een voor van op bij met en of",
		"na do w z dla i lub för till av och på för den det в на для и или с до от по")
	// refusals are words that say that nobody tells the value.
	refusals = newWordSet("not never no none nicht kein pas no não non niet nie inte ikke ei не")
)

// valuesInSentence returns where the values stand in what follows the name of a secret: the words after each
// "is", "was", "now" or "to", up to the next word that belongs to no value. likely says which words can be values.
func valuesInSentence(rest string, likely func(string) bool) (found []span) {
	if signed := strings.TrimLeft(rest, ":="); len(signed) < len(rest) && !isAside(firstWord(signed)) {
		return nil // the rules of signs know it
	}
	var s sentence
	for from, to := range wordsOf(rest) {
		word := rest[from:to]
		if found != nil && s.inValue && s.extends(word, likely) {
			found[len(found)-1].to = to
		} else if s.step(word, likely) {
			found = append(found, span{from: from, to: to})
		}
		if endsSentence(word) {
			break
		}
	}
	for i, f := range found {
		found[i] = trimValue(rest, f)
	}
	return found
}

// isAside reports whether a word can stand between a sign and the value.
func isAside(word string) bool { return bridges[word] || times[word] || copulas[word] }

func firstWord(text string) string {
	for from, to := range wordsOf(text) {
		return bareWord(text[from:to])
	}
	return ""
}

// sentence is where the reading of one stands.
type sentence struct {
	begun   bool // more than prepositions and adverbs was read
	said    bool // a copula was read: the next word that can be a value is one
	state   bool // a word that says how the secret is has come since
	aside   bool // a preposition has come since: what follows may be no value, and one may come after it
	changed bool // the last word was a verb of changing, or an adverb
	inValue bool
}

// step reads a word and reports whether a value begins with it.
func (s *sentence) step(word string, likely func(string) bool) bool {
	bare := bareWord(word)
	wasChanged := s.changed
	s.inValue, s.changed = false, changes[bare] || times[bare]
	switch {
	case copulas[bare] || wasChanged && directions[bare] || bare == "on" && !s.begun: // Finnish
		s.said, s.state, s.aside = true, false, false
	case times[bare]:
		s.said = s.said || !s.begun || endsInColon(word)
		return false
	case bridges[bare]:
		s.said, s.aside = s.said && !s.state || endsInColon(word), s.said
		return false
	case changes[bare] || refusals[bare] || plainWord("", bare):
		s.state = s.state || !s.aside
		s.said = s.said || changes[bare] && endsInColon(word)
	case endsInColon(word):
		s.said = true
	case s.said && likely(bare):
		s.said, s.inValue = s.aside, true
	}
	s.begun = true
	return s.inValue
}

func endsInColon(word string) bool { return strings.HasSuffix(word, ":") }

// extends reports whether a value goes on with a word, as a phrase of several does.
func (s *sentence) extends(word string, likely func(string) bool) bool {
	bare := bareWord(word)
	return !copulas[bare] && !times[bare] && !bridges[bare] && !plainWord("", bare) && likely(bare)
}

// wordsOf yields the places of the first words of a text.
func wordsOf(text string) func(yield func(from, to int) bool) {
	return func(yield func(from, to int) bool) {
		at := 0
		for range sentenceWords {
			for at < len(text) && isSpaceAt(text, at) {
				at++
			}
			from := at
			for at < len(text) && !isSpaceAt(text, at) {
				at++
			}
			if from == at || !yield(from, at) {
				return
			}
		}
	}
}

func isSpaceAt(text string, i int) bool { return strings.IndexByte(space, text[i]) >= 0 }

// endsSentence reports whether a sentence ends with a word.
func endsSentence(word string) bool {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(word, `"')]`))
	return strings.ContainsRune(".!?;。", last)
}

// bareWord is a word in small letters without the signs around it.
func bareWord(word string) string {
	const around = "\"'`“”«»„()[]{}<>,;.!?、。"
	bare := strings.ToLower(strings.Trim(word, around))
	if trimmed := strings.TrimRight(bare, ":="+around); trimmed != "" {
		return trimmed
	}
	return bare
}

// trimValue leaves the quotes around a value, and the comma after it, in the text.
func trimValue(text string, s span) span {
	value := text[s.from:s.to]
	s.from += len(value) - len(strings.TrimLeft(value, "\"'`“«„([{<"))
	s.to -= len(value) - len(strings.TrimRight(value, "\"'`”»“)]},;>"))
	if s.from >= s.to {
		s.from = s.to
	}
	return s
}

// anyValue takes every word that holds a letter or a digit for a value.
func anyValue(word string) bool {
	return strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) ||
		len(word) > 2
}

// mixedValue takes words of letters and digits for values: "token" means a piece of text as well.
func mixedValue(word string) bool {
	return len(word) >= 6 && !smallNumber.MatchString(word) && strings.ContainsFunc(word, unicode.IsLetter) &&
		strings.ContainsFunc(word, unicode.IsDigit)
}

// newSentenceRule makes the rule that the values in the sentence after one of the words are secrets.
func newSentenceRule(name string, words []string, likely func(string) bool) detector {
	d := newLanguageRule(name, words, `s?["'\])]?([\s:=]|,\s|$)`)
	d.keep = nil
	d.after = func(rest string) []span { return valuesInSentence(rest, likely) }
	return d
}

// keyPhrases name secrets of programs in sentences.
var keyPhrases = []string{
	"api ?key", "access key", "secret key", "(?:access |api |auth |bearer )?token", "credentials?", "pin code", "passcode",
}

// reversedRules find a value that a sentence names before it says what it is: "X is the password", "use X as password".
var reversedRules = []detector{
	newReversedRule(`is|was|ist|war|est|es|è|é`, `(?:now |today |jetzt |nun )?(?:`+owners+`) `),
	newReversedRule(`as|als|comme|como|come`, `(?:(?:`+owners+`) )?`),
}

// owners stand before the name of a secret.
const owners = `the|my|our|your|their|a|das|mein|dein|unser|euer|ihr|le|mon|notre|la|mi|nuestra|il`

// newReversedRule makes a rule for a verb or conjunction, and what may stand before the name of the secret.
func newReversedRule(verb, before string) detector {
	return detector{
		name: "password-word", need: parseNeed("pass|pwd|kennwort|secret|contrase|senha"),
		re: regexp.MustCompile(`(?i)(?:^|[\s"'])([^\s"',;:]+)["']?,? (?:` + verb + `) ` + before + `(?:[\pL0-9-]+ )?` +
			`(?:password|passwd|passwort|pass ?phrase|pass ?code|kennwort|pwd|secret|mot de passe|contrase[ñn]a|senha)\b`),
		keep: noValue,
	}
}

// noValue keeps pronouns and other words that no secret is.
func noValue(_, word string) bool {
	bare := bareWord(word)
	return bridges[bare] || times[bare] || plainWord("", bare) || pronouns[bare]
}

var pronouns = newWordSet("what where how here there this that it which who when why dies dieses das was wo wie hier",
	"ce ceci esto eso questo questa isto isso wrong forgot problem issue cause reason only first second")
