package sqlledger

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"

	"modernc.org/sqlite"
)

// image is the first database in memory that this process has migrated, as it was then. A process that makes many of
// them, as tests do, need not run each migration for each.
var image struct {
	sync.Mutex
	bytes []byte
}

// copier is a connection to a database that can be copied.
type copier interface {
	Serialize() ([]byte, error)
	Deserialize(image []byte) error
	NewBackup(to string) (*sqlite.Backup, error)
}

// keepImage keeps a database in memory, once it is migrated and before anything is in it.
func keepImage(ctx context.Context, s *Store) error {
	image.Lock()
	defer image.Unlock()
	if s.memory == "" || image.bytes != nil {
		return nil
	}
	c, err := s.writer.Conn(ctx)
	if err != nil {
		return wrapError("keeping a database in memory", err)
	}
	defer func() { _ = c.Close() }()
	err = c.Raw(func(raw any) (err error) {
		inner, ok := raw.(copier)
		if !ok {
			return fmt.Errorf("the driver's %T copies no database", raw)
		}
		image.bytes, err = inner.Serialize()
		return err
	})
	return wrapError("keeping a database in memory", err)
}

// copyImage makes a database in memory that has no tables yet a copy of the image, if there is one.
func copyImage(ctx context.Context, s *Store) (copied bool, err error) {
	image.Lock()
	bytes := image.bytes
	image.Unlock()
	if s.memory == "" || bytes == nil {
		return false, nil
	}
	if have, err := readVersion(s.read.WithContext(ctx)); err != nil || have != 0 {
		return false, err
	}
	return true, wrapError("copying a database in memory", fillFrom(ctx, s, bytes))
}

// fillFrom fills a database in memory. One of several connections is filled by a backup of another one: each of them
// would keep the database to itself.
func fillFrom(ctx context.Context, s *Store, bytes []byte) error {
	if s.memory == ownMemory {
		c, err := s.writer.Conn(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		return c.Raw(func(raw any) error {
			inner, ok := raw.(copier)
			if !ok {
				return fmt.Errorf("the driver's %T copies no database", raw)
			}
			return inner.Deserialize(bytes)
		})
	}
	from, err := (&sqlite.Driver{}).Open(ownMemory)
	if err != nil {
		return err
	}
	return errors.Join(backUp(from, bytes, s.memory), from.Close())
}

func backUp(from driver.Conn, bytes []byte, to string) error {
	c, ok := from.(copier)
	if !ok {
		return fmt.Errorf("the driver's %T copies no database", from)
	}
	if err := c.Deserialize(bytes); err != nil {
		return err
	}
	b, err := c.NewBackup(to)
	if err != nil {
		return err
	}
	_, err = b.Step(-1)
	return errors.Join(err, b.Finish())
}
