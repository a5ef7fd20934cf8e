package redact

import (
	"regexp"
	"strings"
)

// value is a secret that follows its name: quotes around it are not part of it.
const value = `["'\x60“«„({\[]*([^\s"'\x60”»“)}\],;、。，<>]+)`

// commandRules find passwords in the arguments of programs that take one.
var commandRules = []detector{
	newDetector("command", `\bcurl\b|\bwget\b|\bhttp\b|\bhttps\b|\bhttpie\b & -u|-a|--user|--proxy-user|--auth`,
		`\b(?:curl|wget|https?|httpie)\b.*?\s(?:-u|--user|-U|--proxy-user|-a|--auth)`+
			`[ =]?["']?([^\s"':=]+:[^\s"']+)`).atWords(),
	newDetector("command", "mysql|mariadb & -p", `\b(?:mysql|mariadb)[a-z]*\b.*?\s-p(["'][^"']+["']|[^\s"']+)`),
	newDetector("command", "sshpass", `\bsshpass\b.*?\s-p\s*["']?([^\s"']+)`),
	newDetector("command", `\blogin\b & -p`, `\blogin\b.*?\s-p\s+["']?([^\s"']+)`).atWords(),
	newDetector("command", "redis-cli|snmp & -a", `\b(?:redis-cli|snmp[a-z]+)\b.*?\s-[aA]\s+["']?([^\s"']+)`),
	newDetector("command", "sqlcmd|bcp|zip|ipmitool|rabbitmqadmin & -p",
		`\b(?:sqlcmd|bcp|zip|unzip|ipmitool|rabbitmqadmin)\b.*?\s-P\s*["']?([^\s"']+)`),
	newDetector("command", `\bmongo|\btwine|\b7z|\brar\b|\binflux|\bcqlsh|\boc\b|\bnet\b & -p`,
		`\b(?:mongo[a-z]*|twine|7za?|rar|influx|cqlsh|oc|net)\b.*?\s-p\s*["']?([^\s"']+)`).atWords(),
	newDetector("command", "ldap & -w", `\bldap[a-z]+\b.*?\s-w\s+["']?([^\s"']+)`),
	newDetector("command", "smb & -u & %", `\bsmb[a-z]+\b.*?\s-U\s+\S+?%(\S+)`),
	newDetector("command", "htpasswd", `\bhtpasswd\b.*?\s-\S*b\S*\s+\S+\s+\S+\s+(\S+)`),
	newDetector("command", `\bopenssl\b & -k|-pass`,
		`\bopenssl\b.*?\s-(?:k|K|pass|passin|passout)\s+(?:pass:)?["']?([^\s"']+)`).atWords(),
	newDetector("command", "pass:", `\bpass:(\S+)`),
	newDetector("command", `\bnet\b & \buse\b & /user:`, `(?i)\bnet\s+use\b.*?/user:\S+\s+(\S+)`).atWords(),
	newDetector("command", "--from-literal", `--from-literal=\S+?=(\S+)`),
	newDetector("command", `\bsend\b & "`, `\bsend\s+"([^"]+)"`).atWords(),
	newDetector("command", `\becho\b & sudo|chpasswd|base64|gh|docker`,
		`\becho\s+["']?(.+?)["']?\s*\|\s*(?:sudo\b|chpasswd|base64|gh\b|docker\b)`).atWords(),
	newDetector("command", "storepass|keypass|requirepass", `\b(?:storepass|keypass|requirepass)\s+["']?([^\s"']+)`),
	newDetector("command", "isql", `\bisql\s+\S+\s+\S+\s+(\S{5,})`),
	newDetector("command", `\bmc\b & \balias\b`, `\bmc\s+alias\s+set\s+(.+)`).atWords(),
	newDetector("command", "--user & :", `\s--user[ =]["']?([^\s"':=]+:[^\s"']+)`),
	newDetector("command", `\bwandb\b|\bvault\b|\bhuggingface-cli\b & \blogin\b`,
		`\b(?:wandb|vault|huggingface-cli)\s+login\s+([^\s-]\S{7,})`).atWords(),
	newDetector("command", "rclone", `\brclone\s+config\b.*?\bpass\s+(\S+)`),
}

// passwordWords name a password in the languages that logs are written in: what follows one, with a sign, a verb or
// nothing between them, is cut.
var passwordWords = []string{
	"password", "passwd", "passwort", "passwords?", "pass ?phrase", "pass ?code", "pass ?word", "kennwort",
	"zugangsdaten", "mot de passe", "mdp",
	"contrase(?:ñ|n)a", "senha", "palavra-passe", "parola(?: d'ordine)?", "wachtwoord", "has(?:ł|l)o", "пароль",
	"л(?:ö|o)senord(?:et)?", "l(?:ö|o)senord(?:et)?",
	"heslo", "jelsz(?:ó|o)", "salasana", "(?:ş|s)ifre", "mật khẩu", "mat khau", "密码", "密碼", "口令", "パスワード", "暗証番号",
	"비밀번호", "암호", "كلمة المرور", "סיסמה", "पासवर्ड",
	`pw`, "pwd", "pswd", "passkey", "secret",
}

// keyWords name a secret only where a sign follows.
var keyWords = []string{
	"geheimnis", "schl(?:ü|u|ue)ssel", "cl(?:é|e)(?: secr(?:è|e)te)?", "jeton", "clave", "chiave(?: segreta)?",
	"sleutel", "klucz", "(?:секретный )?ключ", "секрет", "密钥", "密鑰",
	"シークレット", "비밀 ?키", "creds?", "credentials?", "zugangsdaten", "psk",
}

// is are what stands between a name and its value, besides signs.
const is = `(?:is|was|are|as|to|of|ist|lautet|war|est|sera|es|era|è|e|é|foi|is|jest|to|är|on|это|是|为|為|は|が|는|은)`

// anyOf joins words as they read once a line is plain.
func anyOf(words []string) string {
	return strings.ReplaceAll(toPlainText(strings.Join(words, "|")), weakSpace, " ")
}

// newLanguageRule makes the rule that one of the words, after which no letter stands, introduces what then matches.
func newLanguageRule(name string, words []string, then string) detector {
	pattern := `(?:` + anyOf(words) + `)` + then
	spelled := listSpellings(anyOf(words))
	return detector{
		name: name, need: needsWordEnd(spelled), keep: plainWord, starts: wordsAt(noLetterBefore, spelled),
		re: regexp.MustCompile(`(?i)(?:^|[^\pL])` + pattern), here: atStart(`(?i)` + pattern),
	}
}

var languageRules = []detector{
	newLanguageRule("password-word", passwordWords, toPlainText(`(?:\s+(?:for|до|für den|für|de|del|of)`)+
		`\s+[\pL0-9@._-]+(?:\s+[\pL0-9@._-]+)?)?["'\]]?(?:\s*[:=]+>?\s*|\s+`+toPlainText(is)+`\s*:?\s+)`+value),
	newLanguageRule("password-word", passwordWords, `["'\]]?\s+`+value),
	newSentenceRule("password-word", passwordWords, anyValue),
	newSentenceRule("credentials", keyPhrases, mixedValue),
	reversedRules[0], reversedRules[1],
	newLanguageRule("password-word", passwordWords, `[,;]?\s+\(?(?:which|that|it)\s+(?:is|was)\s+`+value),
	{name: "password-word", need: parseNeed("p a s s"),
		re: regexp.MustCompile(`(?i)\bp a s s(?: w o r d| w d| p h r a s e)?\s*(?:[:=]|i s\b|is\b)\s*(\S+)`)},
	{name: "password-word", need: parseNeed("密码|密碼|口令|パスワード|暗証番号|비밀번호|암호"),
		re: regexp.MustCompile(`(?:密码|密碼|口令|パスワード|暗証番号|비밀번호|암호)(?:是|为|為|は|が|는|은|\s|:)*([!-~]+)`)},
	{name: "password-word", need: parseNeed("密码|密碼|口令|パスワード|暗証番号|비밀번호|암호"),
		re: regexp.MustCompile(`(?:密码|密碼|口令|パスワード|暗証番号|비밀번호|암호)[^!-~\n]{0,20}(?:是|为|為|成|は|が|を|는|은|이|로)` +
			`[^!-~\n]{0,4}([!-~]+)`)},
	newLanguageRule("password-word", keyWords, `["'\]]?\s*[:=]+\s*`+value),
	newDetector("credentials", `\bcred|\blogin|\blogon|\baccount|\bzugangsdaten|\buser & /`,
		`(?i)\b(?:creds?|credentials?|login|logon|account|zugangsdaten|user ?/ ?pass\w*)\s*(?:[:=]|are|is)?\s*`+
			`([^\s/]+\s?/\s?[^\s/]+)(?:\s|$)`).atWords(),
	newDetector("credentials", `\badmin:|\broot:|\bguest:|\buser:|\bsa:|\bpostgres:`,
		`\b(?:admin|root|guest|user|sa|postgres):(\S+)`).atWords(),
	newDetector("credentials", `\bapi key\b|\baccess key\b|\bsecret key\b|\btoken\b`,
		`(?i)\b(?:api key|access key|secret key|token)\s+(?:is\s+|=\s*)?`+
			`([A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*[A-Za-z][A-Za-z0-9_.-]*|[A-Za-z]+[0-9][A-Za-z0-9_.-]{4,})`).atWords(),
	newDetector("credentials", `\bmachine\b|\bdefault\b & \bpassword\b`,
		`\b(?:machine|default)\b.*\bpassword\s+(\S+)`).atWords(),
	newDetector("credentials", ":",
		`(?:^|\s)[\w.*-]+:(?:[0-9]{2,5}|\*):[\w.*-]+:[\w.*@-]+:(\S+)`).withCondition(hasFiveFields),
	newDetector("credentials", `\bauth\b & \bplain\b|\blogin\b`, `(?i)\bauth["']?\s+(?:plain|login)\s+(\S+)`).atWords(),
	newDetector("credentials", `\bsetenv\b|\benv\b|\bset\b & password|passwd|secret|token|key`,
		`(?i)\b(?:setenv|ENV|set -x|set)\s+`+
			`[A-Za-z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|KEY|_password)\s+["']?(\S+)`).atWords(),
	newDetector("credentials", `secret|password|api_key & =|default|value & "|'`,
		`(?i)[A-Za-z0-9_-]*(?:secret_access_key|password|api_key|secret)["']?\s*`+
			`(?:\{?\s*(?:default|value)|\)?\s*=\s*(?:String::from|str|f|r)?)\s*[=(]*\s*["']([^"']+)`),
	newDetector("credentials", "accesskey|access_key & secret", `(?i)secret_?access_?key["']?\s+["']?(\S+)`),
	newDetector("credentials", "password & > & <", `(?i)>?password>?<?[^<>=]*>(?:<[A-Za-z]+>)?([^<]+)<`),
	newDetector("credentials", `value=" & key="|name="`,
		`(?i)(?:key|name)="[^"]*(?:pass|secret|token|key)[^"]*"\s+value="([^"]+)"`),
	newDetector("credentials", "define(",
		`(?i)define\(\s*["'][^"']*(?:pass|secret|token|key)[^"']*["']\s*,\s*["']([^"']+)`),
	newDetector("hash", "$", `\$(?:apr1|[0-9][a-z]?|argon2[id]*|y|scrypt|pbkdf2[^$]*)\$([^\s:"']+)`),
	newDetector("passport", `\bpassport|\bausweis|\bid card`,
		`(?i)\b(?:passport|ausweis|id card)(?: no\.?| nr\.?| number)?\s*[:=]?\s*([A-Z0-9]{6,12})\b`).atWords(),
}

// codeRules find short numbers that let somebody in.
var codeRules = []detector{
	newDetector("code",
		`\bpin\b|\botp\b|\btotp\b|\bmfa\b|\b2fa\b|\bone-time |\bone time |\bverification code\b|\bsecurity code\b|`+
			`\btan\b|\bcvv|\bcvc`,
		`(?i)\b(?:pin|t?otp|mfa|2fa|one[- ]time (?:code|pass\w*)|verification code|security code|tan|cvv2?|cvc2?)\b`+
			`[^0-9\n]{0,20}([0-9][0-9 -]{1,9}[0-9])`).atWords(),
	newDetector("code", `\bauth & code\b`, `(?i)\bauth\w* code\b[^0-9\n]{0,20}([0-9][0-9 -]{1,9}[0-9])`).atWords(),
	newDetector("code", `s your & \bcode`, `(?i)\b([0-9]{4,8})\s+(?:as|is) your\b.{0,20}\bcode`),
	newDetector("code", `\brecovery code|\bbackup code`,
		`(?i)\b(?:recovery|backup) codes?\s*[:=]?\s*([A-Za-z0-9]{4,}(?:-[A-Za-z0-9]{3,})+)`).atWords(),
	newDetector("code", `\bssn\b|\bsocial security`,
		`(?i)\b(?:ssn|social security(?: number)?)\b\D{0,5}([0-9]{3}-?[0-9]{2}-?[0-9]{4})`).atWords(),
}

// common are words that follow the name of a password in messages about one.
var common = regexp.MustCompile(`(?i)^(?:authentication|auth|required|reset|expired|incorrect|wrong|` +
	`changed?|updated?|for|prompt|fields?|file|policy|` +
	`is|was|are|not|must|may|has|have|and|or|in|of|from|hash(?:ing)?|manager|rotation|protected|set|mismatch|accepted|` +
	`verified|failed|ok|invalid|missing|needed|valid|loaded|will|should|can(?:not)?|on|at|to|with|the|a|an|no|none|null|` +
	`true|false|fehlt|falsch|vergessen|ist|lautet|est|es|è|é|jest|user|check|server|length|option|argument|store|` +
	`management|scanning|key|keys|value|name|type|manager\.|error|text|:|=|-|is:|reminder|works?|accepted\.)[.,:;!?]?$`)

// plainWord keeps the words of a sentence about passwords.
func plainWord(_, word string) bool {
	bare := bareWord(word)
	return common.MatchString(word) || harmlessValue.MatchString(word) || times[bare] || changes[bare] ||
		copulas[bare] || bridges[bare]
}
