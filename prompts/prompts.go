// Package prompts holds every text the agent sends to a language model, as
// numbered templates. A version that has been released is never changed: a
// better wording is a new version, so that forecasts made with different
// wordings can be told apart by the hash that is stored with them.
//
// Text from logs is data. A template marks it with a delimiter that the caller
// draws at random for each call, and passes each line through the function
// data, which keeps a line from leaving its place.
package prompts

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"text/template"
)

//go:embed forecast/*.tmpl
var files embed.FS

// Prompt is a rendered template.
type Prompt struct {
	System string
	User   string
	Hash   string // SHA-256 of the template's source, in hex: the same for all data
}

// Data is what a template is rendered with.
type Data interface {
	// Validate says why the data must not be sent, or returns nil.
	Validate() error
}

// Render fills the template of the name and version, for example "forecast"
// and "v1", with data. It fails for a template that does not exist, for data
// that does not validate and for data that lacks a field the template uses.
func Render(name, version string, data Data) (Prompt, error) {
	if err := data.Validate(); err != nil {
		return Prompt{}, fmt.Errorf("checking the data of prompt %s/%s: %w", name, version, err)
	}
	system, err := readSource(name, version, "system")
	if err != nil {
		return Prompt{}, err
	}
	user, err := readSource(name, version, "user")
	if err != nil {
		return Prompt{}, err
	}
	sum := sha256.Sum256(append(append(bytes.Clone(system), 0), user...))
	prompt := Prompt{Hash: hex.EncodeToString(sum[:])}
	if prompt.System, err = fillTemplate(name+"/"+version+".system", system, data); err != nil {
		return Prompt{}, err
	}
	if prompt.User, err = fillTemplate(name+"/"+version+".user", user, data); err != nil {
		return Prompt{}, err
	}
	return prompt, nil
}

func readSource(name, version, part string) ([]byte, error) {
	text, err := fs.ReadFile(files, name+"/"+version+"."+part+".tmpl")
	if err != nil {
		return nil, fmt.Errorf("finding prompt %s/%s: %w", name, version, err)
	}
	return text, nil
}

func fillTemplate(name string, text []byte, data Data) (string, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"data": quoteText}).Parse(string(text))
	if err != nil {
		return "", fmt.Errorf("parsing prompt %s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, data); err != nil {
		return "", fmt.Errorf("rendering prompt %s: %w", name, err)
	}
	return out.String(), nil
}
