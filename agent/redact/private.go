package redact

import (
	"regexp"
	"strings"
)

// privateRules find what tells of people, places and projects.
var privateRules = []detector{
	{name: "card", re: regexp.MustCompile(`\b(?:[0-9][ -]?){14,18}[0-9]\b`), can: manyDigits(15), keep: noCard},
	{name: "iban", re: regexp.MustCompile(`\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b`),
		can: matchShapes("AA00"), keep: noIBAN},
	newDetector("phone", "+1|+2|+3|+4|+5|+6|+7|+8|+9", `\+[1-9][0-9]{0,2}(?:[ ./()-]{0,2}[0-9]){7,12}\b`),
	newDetector("phone", "",
		`\([0-9]{3}\) ?[0-9]{3}[-. ][0-9]{4}\b|\b[0-9]{3}-[0-9]{3}-[0-9]{4}\b|\b[0-9]{3}\.[0-9]{3}\.[0-9]{4}\b`).
		withCondition(matchShapes("(000) 000", "(000)000", "000-000-0000", "000.000.0000")),
	newDetector("phone", `\btel|\btél|\bfon\b|\bphone\b|\bmobil\b|\bmobile\b|\bhandy\b|\bfax\b|\bcall\b|\bcell\b`,
		`(?i)\b(?:t[eé]l(?:efon\w*|ephone)?|fon|phone|mobile?|handy|fax|call|cell)\b[.:= ]{0,3}`+
			`(\+?[0-9](?:[ ./()-]{0,2}[0-9]){5,13})\b`).atWords(),
	newDetector("email", `\bat\b & (|[ & )|]`,
		`(?i)\b([A-Z0-9._+-]+)\s*[\[(]\s*at\s*[\])]\s*[A-Z0-9-]+(?:\s*(?:[\[(]\s*dot\s*[\])]|\.)\s*[A-Z0-9]+)+`),
	newDetector("path",
		"/home/|/users/|/data|/proj|/work|/mnt/|/srv/|/scratch/|/gpfs/|/lustre/|/nfs/|/fsx/|/efs/|/shared/|/export/|"+
			"/storage/|/net/|/private/|/group|/team|/ceph/|/beegfs/|/weka/|/root/|/media/|/vol|~",
		`(?:^|[\s"'=:(,@])(?:/(?:home|users|data|projects?|proj|work|works?paces?|mnt|srv|scratch|gpfs|lustre|nfs|`+
			`fsx|efs|shared|export|storage|net|private|groups?|teams?|datasets?|ceph|beegfs|weka|root|media|vol[a-z0-9]*|`+
			`Users|Volumes)|~[A-Za-z0-9._-]*)/([^\s"';,|)]+)`),
	newDetector("path", `:\`, `(?i)\b[A-Z]:\\(?:Users|Projects?|Data|Work|Home|Src|Code|Dev)\\([^\s"';,|]+)`),
	newDetector("path", `\\`, `(?:^|\s)\\\\([A-Za-z0-9._-]+\\[^\s"']+)`),
	newDetector("url", "://", `\b[A-Za-z][A-Za-z0-9+.-]*://([^\s"'<>]+)`),
	newDetector("url", "arn:", `\barn:aws[a-z-]*:(\S+)`),
	newDetector("cloud-project", "projects/|subscriptions/|resourcegroups/",
		`\b(?:projects|subscriptions|resourceGroups)/([A-Za-z0-9][A-Za-z0-9._-]{3,})`),
	{name: "host",
		need: parseNeed(`\bon\b|\bfrom\b|\bto\b|\bat\b|\bvia\b & \bhost\b|\bnode\b|\bserver\b|\bmachine\b`),
		re: regexp.MustCompile(`(?i)\b(?:on|from|to|at|via)\s+(?:host|node|server|machine)\s+` +
			`([A-Za-z0-9._-]*[0-9][A-Za-z0-9._-]*)`)},
	newDetector("host", `\bssh\b|\bscp\b|\brsync\b`,
		`\b(?:ssh|scp|rsync)\s+(?:-[A-Za-z]+\s+(?:[0-9]+\s+)?)*([a-z][A-Za-z._-]*[0-9][A-Za-z0-9._-]*)`).atWords(),
	newDetector("host", `\bnode|\bdgx|\bhgx|\bcompute|\btrainer|\blogin|\bsrv|\bnid|\bgpunode|\bgpu-node|\bcn`,
		`(?i)\b(?:node|dgx|hgx|compute|trainer|login|srv|nid|gpu-?node|cn)[-_]?(?:[a-z]+-)*[0-9]{1,5}\b`).
		atWords(),
	newDetector("host", `\bgpu-|\bgpu0|\bgpu1|\bgpu2|\bgpu3|\bgpu4|\bgpu5|\bgpu6|\bgpu7|\bgpu8|\bgpu9`,
		`\bgpu(?:-[a-z0-9]+)*-?[0-9]{2,4}(?:[:\s]|$)`).atWords(),
	newDetector("host", "_addr|nodelist|hostname|_host & =",
		`(?i)(?:MASTER_ADDR|NODELIST|HOSTNAME|_HOST|_ADDR)\s*=\s*(\S+)`),
	{name: "user",
		need: parseNeed(`\bfor user|\bas user|\buser|\bsubmitted by|\bowned by|\bstarted by|\blaunched by|\brun by|` +
			`\brequested by|\bcanceled by|\bcancelled by|\bcommit by|\bowner:|\bowner=|` +
			`\bassigned to|\breviewer|\bhello|\bdear|\blogname=`),
		keep: noName,
		re: regexp.MustCompile(`(?i)\b(?:for user|as user|user|submitted by|owned by|started by|launched by|run by|` +
			`requested by|cancell?ed by|commit by|owner[:=]|assigned to|reviewer|hello|dear|logname=)\s*` +
			`@?([A-Za-z][A-Za-z0-9._-]{2,}(?-i: [A-Z][a-z]+)?)`)},
	newDetector("user", `\bauthor:`, `(?i)\bauthor:\s*([^<\n]+)`).atWords(),
	newDetector("user", "@", `(?:^|\s)@([a-z][a-z0-9_-]{2,})\b`),
	newDetector("user", `\`, `\b[A-Z][A-Z0-9-]{1,14}\\([a-z][A-Za-z0-9._-]+)`),
}

// noCard keeps numbers that no card can have: of other issuers, or with wrong check digits.
func noCard(match, _ string) bool {
	digits := onlyDigits(match)
	issued := len(digits) == 15 && (digits[:2] == "34" || digits[:2] == "37") ||
		len(digits) == 16 && strings.ContainsRune("23456", rune(digits[0]))
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return !issued || sum%10 != 0
}

func onlyDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// noIBAN keeps what has wrong check digits: the number with its first four characters moved to the end, letters
// counted from 10, is 1 modulo 97.
func noIBAN(match, _ string) bool {
	text := strings.ReplaceAll(match, " ", "")
	rest := 0
	for _, c := range text[4:] + text[:4] {
		switch {
		case c >= '0' && c <= '9':
			rest = (rest*10 + int(c-'0')) % 97
		default:
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return len(text) < 15 || len(text) > 34 || rest != 1
}

// noName keeps the words that follow "user" and "by" in messages about no person.
func noName(_, word string) bool { return noNames.MatchString(word) }

var noNames = regexp.MustCompile(`(?i)^(?:error|errors|input|defined|time|code|mode|space|requested|` +
	`not|is|has|had|was|config|settings?|data|group|level|limit|memory|process|timeout|hand|the|an?|` +
	`world|scheduler|system|slurm|preemption|default|all|each|` +
	`rank|gpus?|epoch|step|name|id|count|all|interrupt|signal|request|quota|there|sir|team|everyone|using|with|for|` +
	`from|expired)$`)
