package redact

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// detector finds one kind of secret or name.
type detector struct {
	name string
	// need and can are conditions that every text with a match meets. Most lines do
	// not, and looking for words is far quicker than for a pattern. They are
	// optional, and change nothing but the time that is spent.
	need need
	can  func(text string) bool
	re   *regexp.Regexp
	// starts, if it is set, returns the places where a match may begin, in their order. No match
	// that begins elsewhere or before the end of another is lost by looking at these alone.
	starts func(text string) []int
	here   *regexp.Regexp // re at the beginning of a text
	// keep reports that a match, which is then left in, is harmless; nil keeps
	// nothing. It is given the whole match and its first group.
	keep func(match, group string) bool
	// after, if it is set, returns which parts of the text from the first group on are cut out, instead of it.
	after func(rest string) []span
}

// findGroups returns the first group of every match, or the match if it has no group.
func (d detector) findGroups(text string) []span {
	if d.can != nil && !d.can(text) {
		return nil
	}
	var found []span
	for _, m := range d.findMatches(text) {
		if d.after != nil {
			found = append(found, d.spansAfter(text, m[2])...)
			continue
		}
		from, to := m[0], m[1]
		if len(m) > 2 && m[2] >= 0 {
			from, to = m[2], m[3]
		}
		if from == to || (d.keep != nil && d.keep(text[m[0]:m[1]], text[from:to])) {
			continue
		}
		found = append(found, span{from: from, to: to, name: d.name})
	}
	return found
}

// spansAfter returns what is cut out from a place on.
func (d detector) spansAfter(text string, place int) (found []span) {
	for _, s := range d.after(text[place:]) {
		if s.from < s.to {
			found = append(found, span{from: place + s.from, to: place + s.to, name: d.name})
		}
	}
	return found
}

// findMatches returns the places of all matches and their groups.
func (d detector) findMatches(text string) [][]int {
	if d.starts == nil {
		return d.re.FindAllStringSubmatchIndex(text, -1)
	}
	var all [][]int
	end := 0
	for _, start := range d.starts(text) {
		if start < end {
			continue
		}
		if m := d.here.FindStringSubmatchIndex(text[start:]); m != nil {
			for i := range m {
				if m[i] >= 0 {
					m[i] += start
				}
			}
			all, end = append(all, m), m[1]
		}
	}
	return all
}

// builtin is the table of detectors. Those with a fixed beginning come first and
// need no word boundary: a secret glued to a word is a secret. The formats are
// those that the issuers publish for secret scanners.
var builtin = anchorRules(slices.Concat(knownRules, commandRules, namedRules, languageRules, codeRules, privateRules,
	peopleRules, lastRules))

func anchorRules(rules []detector) []detector {
	for i, d := range rules {
		if d.starts != nil && d.here == nil {
			rules[i].here = atStart(d.re.String())
		}
	}
	return rules
}

// atWords returns a detector whose matches begin with a word of the first group of its need, at the edge of a word.
func (d detector) atWords() detector {
	var words []string
	for _, word := range d.need[0] {
		words = append(words, strings.ReplaceAll(word, `\b`, ""))
	}
	d.starts = wordsAt(isWordEdge, words)
	return d
}

// atStart is the pattern at the beginning of a text.
func atStart(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)`) }

var knownRules = []detector{
	newDetector("forewarm-key", "fw_",
		`fw_[A-Za-z0-9]{1,16}_[A-Za-z0-9]{6,32}_[A-Za-z0-9]{20,}(?:_[A-Za-z0-9]{1,12})?`),
	newDetector("private-key", "begin & --", `-{2,}\s*BEGIN[^-]{0,60}(?:KEY|CERTIFICATE|MESSAGE)[^-]{0,20}-{2,}.*`),
	newDetector("private-key", "age-secret-key-1", `AGE-SECRET-KEY-1[0-9A-Z]{20,}`),
	newDetector("ssh-key", "aaaa & ssh-|ecdsa-|sk-",
		`(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+@openssh\.com)\s+AAAA[A-Za-z0-9+/=]+`),
	newDetector("aws", "akia|asia|abia|acca|aroa|aida|agpa|anpa|anva|apka",
		`(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA|ANVA|APKA)[A-Z0-9]{12,}`),
	newDetector("gcp", "aiza|ya29.|gocspx-|1//0",
		`AIza[0-9A-Za-z_-]{20,}|ya29\.[0-9A-Za-z_.-]{10,}|GOCSPX-[0-9A-Za-z_-]{10,}|1//0[0-9A-Za-z_-]{20,}`),
	newDetector("azure", "accountkey|sharedaccess|?sig|&sig",
		`(?i)(?:AccountKey|SharedAccessKey|SharedAccessSignature|[?&]sig)\s*=\s*([^;&\s"']+)`),
	newDetector("azure", "q~", `[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{25,}`),
	newDetector("github", "ghp_|gho_|ghu_|ghs_|ghr_|github_pat_",
		`gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}`),
	newDetector("gitlab", "glpat-|glptt-|gldt-|glrt-|glcbt-|gloas-|glsoat-|glimt-|glagent-|glft-|glffct-",
		`gl(?:pat|ptt|dt|rt|cbt|oas|soat|imt|agent|ft|ffct)-[A-Za-z0-9_.-]{10,}`),
	newDetector("huggingface", "hf_|api_org_", `(?:hf_|api_org_)[A-Za-z0-9]{16,}`),
	newDetector("anthropic", "sk-ant-", `sk-ant-[A-Za-z0-9_-]{10,}`),
	newDetector("openai", "sk-", `sk-[A-Za-z0-9_-]{16,}`),
	newDetector("model-provider", "nvapi-|r8_|gsk_|pplx-|xai-|tvly-",
		`nvapi-[A-Za-z0-9_-]{16,}|r8_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}|`+
			`pplx-[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|tvly-[A-Za-z0-9-]{16,}`),
	newDetector("slack", "xox|xapp-|hooks.slack",
		`xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|hooks\.slack\.com/[A-Za-z0-9/_-]+`),
	newDetector("discord", "discord", `discord(?:app)?\.com/api/webhooks/[A-Za-z0-9/_-]+`),
	newDetector("telegram", "", `[0-9]{8,10}:[A-Za-z0-9_-]{30,}`).withCondition(matchShapes("00000000:")),
	newDetector("stripe", "k_live_|k_test_|whsec_", `(?:[rsp]k_(?:live|test)|whsec)_[A-Za-z0-9]{8,}`),
	newDetector("registry", "npm_|pypi-|dckr_|rubygems_",
		`npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}|rubygems_[a-f0-9]{20,}`),
	newDetector("mail-service", "sg.|key-", `SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|key-[a-f0-9]{32}`),
	newDetector("mail-service", "", `SK[a-f0-9]{32}`).withCondition(matchShapes("SKxxxxxxxx")),
	newDetector("cloud-token",
		"dapi|doo_v1_|dop_v1_|dor_v1_|hvs.|hvb.|hvr.|lin_api_|shpat_|shpca_|shppa_|shpss_|glsa_|tskey-",
		`dapi[a-f0-9]{30,}|do[opr]_v1_[a-f0-9]{30,}|hv[sbr]\.[A-Za-z0-9_-]{16,}|dop_v1_[a-f0-9]+|`+
			`lin_api_[A-Za-z0-9]{20,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}|glsa_[A-Za-z0-9_]{20,}|tskey-[A-Za-z0-9-]{10,}`),
	newDetector("jwt", "eyj", `eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)*`),
	newDetector("url-password", ":// & @", `[A-Za-z][A-Za-z0-9+.-]*://([^\s"'<>]*)@`),
	newDetector("dsn", "@tcp(|@udp(|@unix(", `[^\s"'=]+:([^\s"']+)@(?:tcp|udp|unix)\(`),
	newDetector("cloud-token", "atlasv1|dp.|pul-|ntn_|figd_",
		`[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{20,}|dp\.[a-z]{2,5}\.[A-Za-z0-9]{20,}|`+
			`pul-[a-f0-9]{20,}|ntn_[A-Za-z0-9]{20,}|figd_[A-Za-z0-9_-]{20,}`),
}

// namedRules find what a name or a header says is a secret.
var namedRules = []detector{
	newDetector("authorization", "authorization", `(?i)authorization["']?\s*[:=]\s*(.+)`),
	newDetector("cookie", "cookie", `(?i)\b(?:set-)?cookie["']?\s*[:=]\s*(.+)`),
	newDetector("passphrase",
		"passphrase|pass phrase|pass_phrase|pass-phrase|mnemonic|seed phrase|seed_phrase|seed-phrase",
		`(?i)(?:pass[ _-]?phrase|mnemonic|seed[ _-]phrase)["']?\s*[:=]\s*(.+)`),
	newDetector("bearer", `\bbearer\b|\bbasic\b|\bdigest\b|\bnegotiate\b|\bapikey\b`,
		`(?i)\b(?:bearer|basic|digest|negotiate|apikey)\s+([A-Za-z0-9+/=_.~-]{6,})`).atWords(),
	{name: "named-secret", need: need{secretWords}, starts: namedValues(``),
		re:   regexp.MustCompile(`(?i)` + secretName + `["'\]]*\s*(?:=>|:=|==|[=:])\s*["'({\[]*([^\s,;&"')}]+)`),
		keep: isHarmless},
	{name: "named-secret", need: need{secretWords}, starts: namedValues(`"`),
		re: regexp.MustCompile(`(?i)` + secretName + `["'\]]*\s*(?:=>|:=|==|[=:])\s*(?:"([^"]+)"?)`), keep: isHarmless},
	{name: "named-secret", need: need{secretWords}, starts: namedValues(`'`),
		re: regexp.MustCompile(`(?i)` + secretName + `["'\]]*\s*(?:=>|:=|==|[=:])\s*(?:'([^']+)'?)`), keep: isHarmless},
	{name: "named-secret", need: need{secretWords}, starts: flagValues,
		re: regexp.MustCompile(`(?i)-` + secretName + `\s+["']?([^\s"'-][^\s"']*)`), keep: isHarmless},
}

// lastRules find addresses, names after their signs, and what looks random. They come last, so that a secret is named
// after the rule that knows most of it.
var lastRules = []detector{
	newDetector("email", "@", `[A-Za-z0-9._%+'-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}`),
	newDetector("user-at-host", "@", `[A-Za-z_][A-Za-z0-9._-]*@(?:[A-Za-z]|[0-9]+[A-Za-z.])[A-Za-z0-9.-]*`),
	{name: "ip", starts: dottedQuads, re: regexp.MustCompile(`[0-9]{1,3}(?:\.[0-9]{1,3}){3}`)},
	{name: "ip", can: colonsOfIPv6,
		re:   regexp.MustCompile(`(?:^|[^\w:.])([0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:%[0-9A-Za-z]+)?)`),
		keep: notIPv6},
	newDetector("mac", "", `[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}`).withCondition(matchShapes("xx;xx;xx;xx;xx;xx")),
	newDetector("home", `/home|/users|\users|/scratch`,
		`(?i)(?:/home|/users|/export/home|/nfs/home|\\users|/scratch|/data/home)[/\\]+([^\s/\\"':;,]+)`),
	newDetector("home", "~", `(?:^|[\s"'=:(])~([A-Za-z][A-Za-z0-9._-]+)`),
	newDetector("user", `\buser|\blogin|\bowner|\buid|\blogname|\baccount|\brunas|\brun_as & =|:`,
		`(?i)\b(?:user(?:name|id)?|login|owner|uid|logname|account_?name|run_?as)["']?\s*[=:]\s*`+
			`["']?([A-Za-z0-9_.@$\\-]+(?:\([^)]*\))?)`).atWords(),
	{name: "user", need: parseNeed(`\bfor user\b|\bby user\b|\binvalid user\b|\bfrom user\b`), keep: noName,
		re: regexp.MustCompile(`(?i)\b(?:for|by|invalid|from) user\s+([A-Za-z0-9_.-]+)`)},
	newDetector("host", `\bhost|\bnode|\bserver|\bmachine|\bworker|\bfqdn & =|:`,
		`(?i)\b(?:host(?:name)?|node(?:name|list)?|server|machine|worker|fqdn)["']?\s*[=:]\s*`+
			`["']?([A-Za-z0-9_.\[\],-]+)`).atWords().withException(isCount),
	newDetector("host", "",
		`^(?:<[0-9]+>)?[A-Z][a-z]{2}\s+[0-9]{1,2}\s[0-9:]{8}\s+([A-Za-z0-9._-]+)`).withCondition(headOfSyslog),
	domain,
	newDetector("host", `\bip-`, `\bip-[0-9]{1,3}(?:-[0-9]{1,3}){3}\b`).atWords(),
	{name: "uuid", can: matchShapes("xxxxxxxx-xxxx-"),
		re: regexp.MustCompile(`(?i)(?:\b(?:job|run|task|trial|batch|trace)(?:[ _-]?id)?["']?[=: #]{1,2}["']?)?` +
			`([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})`), keep: isIntroduced},
	{name: "hex", can: manyHex,
		re: regexp.MustCompile(`(?i)(?:\b(?:commit|sha|revision|rev|checkout|HEAD is now at)["']?[=: ]{1,2}["']?)?` +
			`((?:[0-9a-f]{2}[: ]){15,}[0-9a-f]{2}|[0-9a-f]{32,})`), keep: isIntroduced},
	{name: "random", starts: disorderlyWords, re: regexp.MustCompile(`[A-Za-z0-9+/=_~.-]{16,}`), keep: isOrderly},
}

// newDetector makes a detector; need is its condition in words.
func newDetector(name, need, pattern string) detector {
	return detector{name: name, need: parseNeed(need), re: regexp.MustCompile(pattern)}
}

// withCondition returns the detector with a condition.
func (d detector) withCondition(can func(text string) bool) detector {
	d.can = can
	return d
}

// withException returns the detector with what it keeps.
func (d detector) withException(harmless func(match, group string) bool) detector {
	d.keep = harmless
	return d
}

var fewDigits = regexp.MustCompile(`^[0-9]{1,5}$`)

// isCount keeps numbers of machines, which job histories are full of: "node=2".
func isCount(_, group string) bool { return fewDigits.MatchString(group) }

// topLevels end the names of hosts.
const topLevels = `com|net|org|io|ai|dev|edu|gov|mil|int|internal|intranet|local|localdomain|lan|corp|cloud|` +
	`app|tech|systems|cluster|home|` +
	`private|info|biz|co|uk|de|fr|ch|at|nl|eu|us|ca|cn|jp|kr|in|au|br|se|no|fi|dk|pl|it|es|be`

// domain finds the names of hosts by their ends.
var domain = newDetector("host", `.`+strings.ReplaceAll(topLevels, "|", `\b|.`)+`\b`,
	`(?i)\b(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+(?:`+topLevels+`)\b`)

// secretWords are in every secretName.
var secretWords = strings.Fields("pass pwd pw pswd secret token key credential auth session conn dsn salt signature " +
	"nonce otp pin psk")

// secretName matches the name of something whose value is a secret.
const secretName = `[A-Za-z0-9_.-]*(?:passw(?:or)?d|passwd|passcode|\bpass|_pass|pwd|secret|token|` +
	`api[_-]?key|apikey|access[_-]?key|private[_-]?key|encryption[_-]?key|signing[_-]?key|` +
	`ssh[_-]?key|license[_-]?key|account[_-]?key|auth[_-]?key|_key|credential|auth|session|` +
	`conn(?:ection)?[_-]?str(?:ing)?|dsn|salt|signature|nonce|` +
	`\b[mt]?otp\b|\bpin\b|pswd|\bpw\b|_pw\b|\bpsk)[A-Za-z0-9_.-]*`

// countName matches names that hold "token" and mean a number of them.
var countName = regexp.MustCompile(`(?i)tokens|token_?(?:count|id|len|num|s)|(?:num|max|min|n|total|per)_?token`)

var smallNumber = regexp.MustCompile(`^[0-9.,eE+/-]{1,16}[kKmMbB]?$`)

// harmlessName matches names that only begin like that of a secret, and harmlessValue what no secret is.
var (
	harmlessName  = regexp.MustCompile(`(?i)tokeni[sz]|passe[sd]|passing|bypass|keyboard|private_steps|always`)
	harmlessValue = regexp.MustCompile(`(?i)^(?:true|false|none|null|nil|yes|no|on|off|enabled|disabled|required|\*+)$`)
)

// isIntroduced keeps hashes of revisions and ids of jobs, which the words before them tell from keys.
func isIntroduced(match, group string) bool { return len(match) > len(group) }

// isHarmless keeps numbers of tokens, which training logs are full of, and what is no secret by its name or its value.
func isHarmless(match, value string) bool {
	name, _, _ := strings.Cut(match, value)
	if harmlessName.MatchString(name) || harmlessValue.MatchString(value) {
		return true
	}
	return countName.MatchString(name) && smallNumber.MatchString(value)
}

// notIPv6 keeps times of day and whatever else has colons.
func notIPv6(_, group string) bool {
	address, _, _ := strings.Cut(group, "%")
	_, err := netip.ParseAddr(address)
	return err != nil || len(address) < 4
}
