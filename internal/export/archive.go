package export

import (
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"time"
)

// archive writes a ZIP. The standard library keeps some 400 bytes for each file
// until the end; this keeps what the directory needs, compressed, and on the disk
// when it becomes much.
type archive struct {
	w       io.Writer
	at      int64 // Offset of what is written next.
	entries int64
	dir     *spool
	pack    *flate.Writer
}

// Numbers of the format, as APPNOTE 6.3.10 names them.
const (
	localHeader  = 0x04034b50
	descriptor   = 0x08074b50
	dirHeader    = 0x02014b50
	dirEnd       = 0x06054b50
	dirEnd64     = 0x06064b50
	dirLocator64 = 0x07064b50
	needs64      = 45
	// Sizes come after the data; names are UTF-8.
	zipFlags    = 1<<3 | 1<<11
	deflated    = 8
	madeOnUnix  = 3 << 8
	plainFile   = 0o100644 << 16
	most16      = math.MaxUint16
	most32      = math.MaxUint32
	extra64     = 1
	end64Length = 44
)

func newArchive(w io.Writer) *archive {
	return &archive{w: w, dir: newSpool(), pack: newPacker(io.Discard)}
}

// newPacker compresses quickly: pages are text, and the network is slower.
func newPacker(w io.Writer) *flate.Writer {
	pack, err := flate.NewWriter(w, flate.BestSpeed)
	if err != nil {
		panic(err) // The level is one there is.
	}
	return pack
}

// add writes one file, whose content fill writes.
func (a *archive) add(name string, at time.Time, fill func(io.Writer) error) error {
	start := a.at
	date, clock := dosTime(at)
	le := binary.LittleEndian
	head := le.AppendUint32(nil, localHeader)
	for _, v := range []uint16{needs64, zipFlags, deflated, clock, date, 0, 0, 0, 0, 0, 0, uint16(len(name)), 0} { //nolint:gosec // Names are short.
		head = le.AppendUint16(head, v)
	}
	if err := a.put(append(head, name...)); err != nil {
		return err
	}
	f := &packed{archive: a, sum: crc32.NewIEEE()}
	begin := a.at
	a.pack.Reset(f.out())
	if err := fill(f); err != nil {
		return err
	}
	if err := a.pack.Close(); err != nil {
		return err
	}
	small := a.at - begin
	if f.size > most32 || small > most32 {
		return fmt.Errorf("%s is larger than a file in a ZIP may be", name)
	}
	sizes := le.AppendUint32(nil, f.sum.Sum32())
	sizes = le.AppendUint32(sizes, uint32(small))  //nolint:gosec // Checked.
	sizes = le.AppendUint32(sizes, uint32(f.size)) //nolint:gosec // Checked.
	if err := a.put(append(le.AppendUint32(nil, descriptor), sizes...)); err != nil {
		return err
	}
	a.entries++
	return a.list(name, start, date, clock, sizes)
}

// list adds a file to the directory, which is written at the end.
func (a *archive) list(name string, start int64, date, clock uint16, sizes []byte) error {
	le := binary.LittleEndian
	offset, extra := uint32(most32), []byte(nil)
	if start < most32 {
		offset = uint32(start) //nolint:gosec // It is under most32.
	} else {
		extra = le.AppendUint16(extra, extra64)
		extra = le.AppendUint16(extra, 8)
		extra = le.AppendUint64(extra, uint64(start))
	}
	entry := le.AppendUint32(nil, dirHeader)
	for _, v := range []uint16{madeOnUnix | needs64, needs64, zipFlags, deflated, clock, date} {
		entry = le.AppendUint16(entry, v)
	}
	entry = append(entry, sizes...)
	for _, v := range []uint16{uint16(len(name)), uint16(len(extra)), 0, 0, 0} { //nolint:gosec // Both are short.
		entry = le.AppendUint16(entry, v)
	}
	entry = le.AppendUint32(entry, plainFile)
	entry = le.AppendUint32(entry, offset)
	_, err := a.dir.Write(append(append(entry, name...), extra...))
	return err
}

// close writes the directory; without it nobody reads the archive.
func (a *archive) close() error {
	start := a.at
	if err := a.dir.copyTo(writerFunc(func(p []byte) (int, error) { return len(p), a.put(p) })); err != nil {
		return err
	}
	size, le := a.at-start, binary.LittleEndian
	var end []byte
	if a.entries >= most16 || start >= most32 || size >= most32 {
		end = a.end64(start, size)
	}
	end = le.AppendUint32(end, dirEnd)
	end = le.AppendUint32(end, 0)
	for range 2 {
		end = le.AppendUint16(end, uint16(min(a.entries, most16))) //nolint:gosec // Bounded.
	}
	end = le.AppendUint32(end, uint32(min(size, most32)))  //nolint:gosec // Bounded.
	end = le.AppendUint32(end, uint32(min(start, most32))) //nolint:gosec // Bounded.
	return a.put(le.AppendUint16(end, 0))
}

// end64 is the end of an archive too large for the old one.
func (a *archive) end64(start, size int64) []byte {
	le, at := binary.LittleEndian, a.at
	end := le.AppendUint32(nil, dirEnd64)
	end = le.AppendUint64(end, end64Length)
	end = le.AppendUint16(end, madeOnUnix|needs64)
	end = le.AppendUint16(end, needs64)
	end = le.AppendUint64(end, 0)
	for _, v := range []int64{a.entries, a.entries, size, start} {
		end = le.AppendUint64(end, uint64(v)) //nolint:gosec // None is negative.
	}
	end = le.AppendUint32(end, dirLocator64)
	end = le.AppendUint32(end, 0)
	end = le.AppendUint64(end, uint64(at)) //nolint:gosec // Not negative.
	return le.AppendUint32(end, 1)
}

func (a *archive) put(p []byte) error {
	n, err := a.w.Write(p)
	a.at += int64(n)
	return err
}

// packed counts, hashes and compresses one file.
type packed struct {
	archive *archive
	sum     interface {
		io.Writer
		Sum32() uint32
	}
	size int64
}

// Write implements io.Writer.
func (f *packed) Write(p []byte) (int, error) {
	f.size += int64(len(p))
	if _, err := f.sum.Write(p); err != nil {
		return 0, err
	}
	return f.archive.pack.Write(p)
}

func (f *packed) out() io.Writer {
	return writerFunc(func(p []byte) (int, error) { return len(p), f.archive.put(p) })
}

// writerFunc is a function as io.Writer.
type writerFunc func(p []byte) (int, error)

// Write implements io.Writer.
func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// dosTime is a moment as ZIP keeps it: to two seconds, from 1980 on.
func dosTime(t time.Time) (uint16, uint16) {
	t = t.UTC()
	if t.Year() < 1980 || t.Year() > 2107 {
		t = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	date := (t.Year()-1980)<<9 | int(t.Month())<<5 | t.Day()
	clock := t.Hour()<<11 | t.Minute()<<5 | t.Second()/2
	return uint16(date), uint16(clock) //nolint:gosec // Both fit.
}
