package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/danielgtaylor/huma/v2"
)

// wholeJSON writes answers that huma encodes: whole, or not at all. huma has its status sent with whatever was written
// when an answer could not be encoded, so that is a panic, which is answered with 500 and logged under the id of the
// request.
var wholeJSON = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		var whole bytes.Buffer
		enc := json.NewEncoder(&whole)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			panic(fmt.Errorf("encoding an answer: %w", err))
		}
		_, err := w.Write(whole.Bytes())
		return err
	},
	Unmarshal: json.Unmarshal,
}
