package tasks

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// strictJSON reads messages in JSON, and refuses a field that they do not have, as the API does: a word that is
// misspelt must not be taken for one that was left out. In binary there are no names, and what is unknown is ignored,
// as protobuf has it.
type strictJSON struct{}

var errNoMessage = errors.New("it is no message")

// Name implements connect.Codec.
func (strictJSON) Name() string { return "json" }

// Marshal implements connect.Codec.
func (strictJSON) Marshal(v any) ([]byte, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	return protojson.Marshal(m)
}

// Unmarshal implements connect.Codec.
func (strictJSON) Unmarshal(data []byte, v any) error {
	m, ok := v.(proto.Message)
	if !ok {
		return errNoMessage
	}
	if err := protojson.Unmarshal(data, m); err != nil {
		return fmt.Errorf("reading JSON: %w", err)
	}
	return nil
}
