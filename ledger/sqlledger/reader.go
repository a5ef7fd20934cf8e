package sqlledger

import (
	"context"

	"github.com/forewarm/forewarm/ledger"
)

// reader reads within one transaction: a reader of each noun, over one connection.
type reader struct {
	*connection
	tenancyReader
	nameReader
	capacityReader
	bookingReader
	jobReader
	journalReader
	taskReader
	forecastReader
	costReader
}

var _ ledger.Reader = reader{}

func newReader(c *connection) reader {
	return reader{
		connection: c, tenancyReader: tenancyReader{c}, nameReader: nameReader{c}, capacityReader: capacityReader{c},
		bookingReader: bookingReader{c}, jobReader: jobReader{c}, journalReader: journalReader{c}, taskReader: taskReader{c},
		forecastReader: forecastReader{c}, costReader: costReader{c},
	}
}

// Read runs fn on one snapshot.
func (s *Store) Read(ctx context.Context, fn func(r ledger.Reader) error) error {
	options := s.dialect.snapshot
	db := s.read.WithContext(ctx).Begin(&options)
	if db.Error != nil {
		return wrapError("beginning a snapshot", db.Error)
	}
	defer db.Rollback()
	r := newReader(&connection{store: s, db: db, isSnapshot: true})
	return r.joinFailure(fn(r))
}
