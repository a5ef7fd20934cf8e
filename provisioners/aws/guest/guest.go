// Package guest is what runs on a machine that the aws provisioner made: a
// script that reports the GPUs on the console and powers the machine off when
// its time is over, the user data that installs it, and the reading of its
// report.
//
// The machine needs no credentials for that, and no way to the control plane:
// its end is a tag that it reads from the instance metadata, and its report is
// a line that EC2 hands out as console output. Anybody with root on the machine
// can write such a line.
package guest

import (
	"bytes"
	_ "embed" // the two scripts
	"errors"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

//go:embed guest.sh
var script string

//go:embed install.sh
var install string

// ExpiryTag is the tag with the machine's end, which the script reads. Instance
// metadata serves keys of letters, digits and + - = . , _ : @ only.
const ExpiryTag = "forewarm:expires-at"

// Never is the value of ExpiryTag for a machine that has no end.
const Never = "never"

// Expiry renders an end as the script compares it; the zero time is Never.
func Expiry(at time.Time) string {
	if at.IsZero() {
		return Never
	}
	return at.UTC().Format(time.RFC3339)
}

// MaxUserData is EC2's limit, before base64.
const MaxUserData = 16_384

// boundary is fixed: the same token must always mean the same bytes, or EC2
// answers IdempotentParameterMismatch.
const boundary = "forewarm-user-data"

// UserData returns the multipart document for cloud-init that installs the
// script and then runs extra, which may be empty, a script (#!…) or a cloud
// config (#cloud-config), and last daemon, which may be empty or a script. A
// machine whose ExpiryTag was never set ends itself after unclaimed.
func UserData(unclaimed time.Duration, extra []byte, daemon string) ([]byte, error) {
	var document bytes.Buffer
	fmt.Fprintf(&document, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"%s\"\n\n", boundary)
	parts := multipart.NewWriter(&document)
	if err := parts.SetBoundary(boundary); err != nil {
		return nil, fmt.Errorf("setting the boundary: %w", err)
	}
	ours := strings.NewReplacer("{{guest}}", script, "{{unclaimed}}",
		strconv.Itoa(int(unclaimed.Seconds()))).Replace(install)
	if err := addPart(parts, "text/x-shellscript", []byte(ours)); err != nil {
		return nil, err
	}
	if len(extra) > 0 {
		kind, err := kindOf(extra)
		if err != nil {
			return nil, err
		}
		if err := addPart(parts, kind, extra); err != nil {
			return nil, err
		}
	}
	if daemon != "" {
		if err := addPart(parts, "text/x-shellscript", []byte(daemon)); err != nil {
			return nil, err
		}
	}
	if err := parts.Close(); err != nil {
		return nil, fmt.Errorf("ending the document: %w", err)
	}
	if document.Len() > MaxUserData {
		return nil, fmt.Errorf("the user data has %d bytes, of which %d are ours; EC2 takes %d", document.Len(),
			len(ours)+len(daemon), MaxUserData)
	}
	return document.Bytes(), nil
}

func addPart(parts *multipart.Writer, kind string, body []byte) error {
	part, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {kind}})
	if err == nil {
		_, err = part.Write(body)
	}
	if err != nil {
		return fmt.Errorf("adding a part: %w", err)
	}
	return nil
}

func kindOf(extra []byte) (string, error) {
	switch {
	case bytes.Contains(extra, []byte("--"+boundary)):
		return "", errors.New("it contains our own boundary")
	case bytes.HasPrefix(extra, []byte("#!")):
		return "text/x-shellscript", nil
	case bytes.HasPrefix(extra, []byte("#cloud-config")):
		return "text/cloud-config", nil
	}
	return "", errors.New("it begins neither with #! nor with #cloud-config")
}
