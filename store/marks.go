package store

// Mark says that a page came back but looks as if it held nothing. It changes
// no state: the item is stored.
type Mark string

// The marks.
const (
	MarkEmpty   Mark = "empty"   // There is hardly any text.
	MarkBlocked Mark = "blocked" // What came is a check of the site's, or its door.
)

// Marks are all of them, as a page offers them.
func Marks() []Mark { return []Mark{MarkEmpty, MarkBlocked} }
