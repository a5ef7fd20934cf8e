// Package migrations holds the numbered SQL that makes and changes the tables,
// one folder per dialect.
//
// A number means the same change in both folders, and a test compares what
// comes out. A file that was released is never edited. There is no way down: a
// step that proved wrong is followed by another one, and data comes back from a
// backup.
//
// Conventions: times and durations are microseconds in BIGINT (a time counts in
// UTC from 1970, and 0 means none), money is micro-dollars in BIGINT, lists are
// JSON in TEXT. The lists of states are those of the tables in core, word for
// word: a test compares them too.
package migrations

import "embed"

// FS holds the folders postgres and sqlite.
//
//go:embed postgres/*.sql sqlite/*.sql
var FS embed.FS
