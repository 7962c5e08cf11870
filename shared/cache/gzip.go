package cache

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// An entry stores its body as the beginning of a gzip stream: the header, and deflate blocks up to
// a byte boundary, none marked as the last. A response appends its personal members as a last block
// that is stored, not compressed. The checksum at the end continues the checksum of the body over
// this block. So a compressed response consists of two byte slices.

// maxBody bounds the size of a decompressed body, bytes.
const maxBody = 2 << 20

// gzipHeader: deflate, no name, no time, unknown operating system.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// A compressor has 1 MB of tables and a decompressor 40 KB, so both are reused.
var (
	deflaters = sync.Pool{New: func() any {
		w, err := flate.NewWriter(nil, flate.DefaultCompression)
		if err != nil {
			panic(err) // unreachable: the level exists
		}
		return w
	}}
	inflaters = sync.Pool{New: func() any { return &inflater{} }}
)

func compress(body []byte) ([]byte, error) {
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	var b bytes.Buffer
	b.Grow(len(gzipHeader) + len(body)/3)
	b.Write(gzipHeader)
	w.Reset(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	// ends on a byte boundary with an empty block; Close would write a last block
	if err := w.Flush(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// appendTrailer appends to b the end of the gzip stream: tail as stored blocks, the checksum and
// the size.
func (e *Entry) appendTrailer(b, tail []byte) []byte {
	rest, last := tail, false
	for !last { // a stored block holds up to 64 KiB; an empty tail is one empty block
		block := rest[:min(len(rest), 0xffff)]
		rest, last = rest[len(block):], len(rest) == len(block)
		b = append(b, boolByte(last))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(block)))
		b = binary.LittleEndian.AppendUint16(b, ^uint16(len(block)))
		b = append(b, block...)
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Update(e.crc, crc32.IEEETable, tail))
	return binary.LittleEndian.AppendUint32(b, e.size+uint32(len(tail)))
}

func boolByte(set bool) byte {
	if set {
		return 1
	}
	return 0
}

// inflater is a decompressor with its source, so that a request allocates neither.
type inflater struct {
	source bytes.Reader
	reader io.ReadCloser
}

// Body returns the decompressed body in a new slice, in one pass over at most 2 MiB. It keeps no
// result: each call decompresses again. CPU and memory only; its decompressors, of 40 KB each, are
// reused. It returns nil and an error if the compressed bytes, the size or the checksum do not fit
// together, also for the zero Entry. Safe for concurrent use.
func (e *Entry) Body() ([]byte, error) { return e.appendBody(nil) }

func (e *Entry) appendBody(b []byte) ([]byte, error) {
	if e.size > maxBody || len(e.compressed) < len(gzipHeader) {
		return nil, fmt.Errorf("cache: decompress: %w", errCorrupt)
	}
	in := inflaters.Get().(*inflater)
	defer inflaters.Put(in)
	in.source.Reset(e.compressed[len(gzipHeader):])
	if in.reader == nil {
		in.reader = flate.NewReader(&in.source)
	} else if err := in.reader.(flate.Resetter).Reset(&in.source, nil); err != nil {
		return nil, fmt.Errorf("cache: decompress: %w", err)
	}
	start := len(b)
	b = append(b, make([]byte, e.size)...)
	// Reading exactly size bytes never reaches the end, where the last block is missing.
	if _, err := io.ReadFull(in.reader, b[start:]); err != nil {
		return nil, fmt.Errorf("cache: decompress: %w", err)
	}
	if crc32.ChecksumIEEE(b[start:]) != e.crc {
		return nil, fmt.Errorf("cache: decompress: %w", errCorrupt)
	}
	return b, nil
}
