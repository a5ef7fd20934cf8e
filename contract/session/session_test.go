package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/forewarm/forewarm/contract/session"
)

func FuzzParseMessage(f *testing.F) {
	f.Add([]byte{1, 'a'})
	f.Add([]byte{4, '{', '}'})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, m []byte) {
		c, data, err := session.ParseMessage(m)
		if err != nil {
			require.ErrorIs(t, err, session.ErrMessage)
			return
		}
		require.Equal(t, m, session.AppendMessage(nil, c, data))
		if s, err := session.ParseSize(data); err == nil {
			again, err := session.ParseSize(s.Encode())
			require.NoError(t, err)
			require.Equal(t, s, again)
		}
		if command, err := session.ParseCommand(data); err == nil {
			for _, text := range append(command.Arguments, command.Directory) {
				require.NotContains(t, text, "\x00")
			}
		}
		if e, err := session.ParseEnd(data); err == nil {
			again, err := session.ParseEnd(e.Encode())
			require.NoError(t, err)
			require.Equal(t, e, again)
		}
	})
}

func TestParseMessageRefuses(t *testing.T) {
	_, _, err := session.ParseMessage(nil)
	require.ErrorIs(t, err, session.ErrMessage)
	_, _, err = session.ParseMessage(make([]byte, session.MostData+2))
	require.ErrorIs(t, err, session.ErrMessage)
	for _, bad := range []string{"", "{}", `{"columns":80}`, `{"columns":80,"rows":-1}`, `{"columns":4097,"rows":24}`} {
		_, err := session.ParseSize([]byte(bad))
		require.ErrorIs(t, err, session.ErrMessage, bad)
	}
	for _, bad := range []string{"", `[]`, `{"arguments":["a\u0000b"]}`, `{"environment":{"A=B":"1"}}`,
		`{"environment":{"":"1"}}`, `{"terminal":{"columns":0,"rows":1}}`, `{"directory":"\u0000"}`} {
		_, err := session.ParseCommand([]byte(bad))
		require.ErrorIs(t, err, session.ErrMessage, bad)
	}
	_, err = session.ParseEnd([]byte("[]"))
	require.ErrorIs(t, err, session.ErrMessage)
}
