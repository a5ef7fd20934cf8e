package redact

import (
	"regexp"
	"strings"
)

// value is a secret that follows its name: quotes around it are not part of it.
const value = `["'\x60“«„({\[]*([^\s"'\x60”»“)}\],;、。，<>]+)`

// commandRules find passwords in the arguments of programs that take one.
var commandRules = []detector{
	re("command", "curl http wget", `\b(?:curl|wget|https?|httpie)\b.*?\s(?:-u|--user|-U|--proxy-user|-a|--auth)[ =]?["']?([^\s"':=]+:[^\s"']+)`),
	re("command", "mysql mariadb", `\b(?:mysql|mariadb)[a-z]*\b.*?\s-p(["'][^"']+["']|[^\s"']+)`),
	re("command", "sshpass", `\bsshpass\b.*?\s-p\s*["']?([^\s"']+)`),
	re("command", "login", `\blogin\b.*?\s-p\s+["']?([^\s"']+)`),
	re("command", "-a", `\b(?:redis-cli|snmp[a-z]+)\b.*?\s-[aA]\s+["']?([^\s"']+)`),
	re("command", "-p", `\b(?:sqlcmd|bcp|zip|unzip|ipmitool|rabbitmqadmin)\b.*?\s-P\s*["']?([^\s"']+)`),
	re("command", "-p", `\b(?:mongo[a-z]*|twine|7za?|rar|influx|cqlsh|oc|net)\b.*?\s-p\s*["']?([^\s"']+)`),
	re("command", "-w", `\bldap[a-z]+\b.*?\s-w\s+["']?([^\s"']+)`),
	re("command", "-u", `\bsmb[a-z]+\b.*?\s-U\s+\S+?%(\S+)`),
	re("command", "htpasswd", `\bhtpasswd\b.*?\s-\S*b\S*\s+\S+\s+\S+\s+(\S+)`),
	re("command", "pass:", `\bpass:(\S+)`),
	re("command", "net use", `(?i)\bnet\s+use\b.*?/user:\S+\s+(\S+)`),
	re("command", "--from-literal", `--from-literal=\S+?=(\S+)`),
	re("command", "send", `\bsend\s+"([^"]+)"`),
	re("command", "sudo chpasswd base64", `\becho\s+["']?(.+?)["']?\s*\|\s*(?:sudo\b|chpasswd|base64|gh\b|docker\b)`),
	re("command", "storepass keypass requirepass", `\b(?:storepass|keypass|requirepass)\s+["']?([^\s"']+)`),
	re("command", "isql", `\bisql\s+\S+\s+\S+\s+(\S{5,})`),
	re("command", "mc alias", `\bmc\s+alias\s+set\s+(.+)`),
	re("command", "--user", `\s--user[ =]["']?([^\s"':=]+:[^\s"']+)`),
	re("command", "wandb login vault login", `\b(?:wandb|vault|huggingface-cli)\s+login\s+([^\s-]\S{7,})`),
	re("command", "rclone", `\brclone\s+config\b.*?\bpass\s+(\S+)`),
}

// passwordWords name a password in the languages that logs are written in: what follows one, with a sign, a verb or
// nothing between them, is cut.
var passwordWords = []string{
	"password", "passwd", "passwort", "passwords?", "pass ?phrase", "pass ?code", "pass ?word", "kennwort", "zugangsdaten", "mot de passe", "mdp",
	"contrase(?:ñ|n)a", "senha", "palavra-passe", "parola(?: d'ordine)?", "wachtwoord", "has(?:ł|l)o", "пароль", "л(?:ö|o)senord(?:et)?", "l(?:ö|o)senord(?:et)?",
	"heslo", "jelsz(?:ó|o)", "salasana", "(?:ş|s)ifre", "mật khẩu", "mat khau", "密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "암호", "كلمة المرور", "סיסמה", "पासवर्ड",
	`pw`, "pwd", "pswd", "passkey", "secret",
}

// keyWords name a secret only where a sign follows.
var keyWords = []string{
	"geheimnis", "schl(?:ü|u|ue)ssel", "cl(?:é|e)(?: secr(?:è|e)te)?", "jeton", "clave", "chiave(?: segreta)?", "sleutel", "klucz", "(?:секретный )?ключ", "секрет", "密钥", "密鑰",
	"シークレット", "비밀 ?키", "creds?", "credentials?", "zugangsdaten", "psk",
}

// is are what stands between a name and its value, besides signs.
const is = `(?:is|was|are|as|to|of|ist|lautet|war|est|sera|es|era|è|e|é|foi|is|jest|to|är|on|это|是|为|為|は|が|는|은)`

// anyOf joins words as they read once a line is plain.
func anyOf(words []string) string {
	return strings.ReplaceAll(plain(strings.Join(words, "|")), weakSpace, " ")
}

// optional are the parts of a word's pattern that another spelling lacks.
var optional = regexp.MustCompile(`\(\?:[^()]*\)\??|[^()]\?`)

// stems are the longest pieces that all spellings of a word have, one for each: what holds none of them holds no word.
func stems(words []string) []string {
	var all []string
	for _, word := range words {
		longest := ""
		for optional.MatchString(word) { // groups within groups
			word = optional.ReplaceAllString(word, "\x00")
		}
		for piece := range strings.SplitSeq(word, "\x00") {
			if len(piece) > len(longest) {
				longest = piece
			}
		}
		all = append(all, strings.ToLower(strings.ReplaceAll(plain(longest), weakSpace, " ")))
	}
	return all
}

var passwordStems, keyStems = stems(passwordWords), stems(keyWords)

var languageRules = []detector{
	{name: "password-word", needs: passwordStems, re: regexp.MustCompile(`(?i)(?:^|[^\pL])(?:` + anyOf(passwordWords) + `)` + plain(`(?:\s+(?:for|до|für den|für|de|del|of)`) + `\s+[\pL0-9@._-]+(?:\s+[\pL0-9@._-]+)?)?["'\]]?(?:\s*[:=]+>?\s*|\s+` + plain(is) + `\s*:?\s+)` + value), keep: plainWord},
	{name: "password-word", needs: passwordStems, re: regexp.MustCompile(`(?i)(?:^|[^\pL])(?:` + anyOf(passwordWords) + `)["'\]]?\s+` + value), keep: plainWord},
	{name: "password-word", needs: strings.Fields("密码 密碼 口令 パスワード 暗証番号 비밀번호 암호"), re: regexp.MustCompile(`(?:密码|密碼|口令|パスワード|暗証番号|비밀번호|암호)(?:是|为|為|は|が|는|은|\s|:)*([!-~]+)`)},
	{name: "password-word", needs: keyStems, re: regexp.MustCompile(`(?i)(?:^|[^\pL])(?:` + anyOf(keyWords) + `)["'\]]?\s*[:=]+\s*` + value), keep: plainWord},
	re("credentials", "cred login user zugang", `(?i)\b(?:creds?|credentials?|login|logon|account|zugangsdaten|user ?/ ?pass\w*)\s*(?:[:=]|are|is)?\s*([^\s/]+\s?/\s?[^\s/]+)(?:\s|$)`),
	re("credentials", "admin: root: guest: user:", `\b(?:admin|root|guest|user|sa|postgres):(\S+)`),
	re("credentials", "api key token", `(?i)\b(?:api key|access key|secret key|token)\s+(?:is\s+|=\s*)?([A-Za-z0-9_.-]*[0-9][A-Za-z0-9_.-]*[A-Za-z][A-Za-z0-9_.-]*|[A-Za-z]+[0-9][A-Za-z0-9_.-]{4,})`),
	re("credentials", "machine default", `\b(?:machine|default)\b.*\bpassword\s+(\S+)`),
	re("credentials", ":", `(?:^|\s)[\w.*-]+:(?:[0-9]{2,5}|\*):[\w.*-]+:[\w.*@-]+:(\S+)`),
	re("credentials", "auth", `(?i)\bauth["']?\s+(?:plain|login)\s+(\S+)`),
	re("credentials", "password secret token key", `(?i)\b(?:setenv|ENV|set -x|set)\s+[A-Za-z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|KEY|_password)\s+["']?(\S+)`),
	re("credentials", "secret password key", `(?i)[A-Za-z0-9_-]*(?:secret_access_key|password|api_key|secret)["']?\s*(?:\{?\s*(?:default|value)|\)?\s*=\s*(?:String::from|str|f|r)?)\s*[=(]*\s*["']([^"']+)`),
	re("credentials", "secret_access_key", `(?i)secret_?access_?key["']?\s+["']?(\S+)`),
	re("credentials", "password>", `(?i)>?password>?<?[^<>=]*>(?:<[A-Za-z]+>)?([^<]+)<`),
	re("credentials", "value=", `(?i)(?:key|name)="[^"]*(?:pass|secret|token|key)[^"]*"\s+value="([^"]+)"`),
	re("credentials", "define", `(?i)define\(\s*["'][^"']*(?:pass|secret|token|key)[^"']*["']\s*,\s*["']([^"']+)`),
	re("hash", "$", `\$(?:apr1|[0-9][a-z]?|argon2[id]*|y|scrypt|pbkdf2[^$]*)\$([^\s:"']+)`),
	re("passport", "passport ausweis", `(?i)\b(?:passport|ausweis|id card)(?: no\.?| nr\.?| number)?\s*[:=]?\s*([A-Z0-9]{6,12})\b`),
}

// codeRules find short numbers that let somebody in.
var codeRules = []detector{
	re("code", "pin otp mfa 2fa code tan cvv cvc", `(?i)\b(?:pin|t?otp|mfa|2fa|one[- ]time (?:code|pass\w*)|verification code|security code|auth\w* code|tan|cvv2?|cvc2?)\b[^0-9\n]{0,20}([0-9][0-9 -]{1,9}[0-9])`),
	re("code", "code", `(?i)\b([0-9]{4,8})\s+(?:as|is) your\b.{0,20}\bcode`),
	re("code", "recovery backup", `(?i)\b(?:recovery|backup) codes?\s*[:=]?\s*([A-Za-z0-9]{4,}(?:-[A-Za-z0-9]{3,})+)`),
	re("code", "ssn social", `(?i)\b(?:ssn|social security(?: number)?)\b\D{0,5}([0-9]{3}-?[0-9]{2}-?[0-9]{4})`),
}

// common are words that follow the name of a password in messages about one.
var common = regexp.MustCompile(`(?i)^(?:authentication|auth|required|reset|expired|incorrect|wrong|changed?|updated?|for|prompt|fields?|file|policy|is|was|are|not|must|may|has|have|and|or|in|of|from|hash(?:ing)?|manager|rotation|protected|set|mismatch|accepted|verified|failed|ok|invalid|missing|needed|valid|loaded|will|should|can(?:not)?|on|at|to|with|the|a|an|no|none|null|true|false|fehlt|falsch|vergessen|ist|lautet|est|es|è|é|jest|user|check|server|length|option|argument|store|management|scanning|key|keys|value|name|type|manager\.|error|text|:|=|-|is:|reminder|works?|accepted\.)[.,:;!?]?$`)

// plainWord keeps the words of a sentence about passwords.
func plainWord(_, word string) bool {
	return common.MatchString(word) || harmlessValue.MatchString(word)
}
