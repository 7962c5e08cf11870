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

// A body is kept as the beginning of a gzip stream: header, and deflate blocks up to a byte boundary, none of them the
// last. What an answer adds for one guest is appended as a last block that is stored, not compressed, and the checksum
// at the end of the stream is the body's carried on over it. So a compressed answer is two slices of bytes.

// maxBody bounds a body before it is packed and after it is unpacked, bytes.
const maxBody = 2 << 20

// gzipHeader: deflate, no name, no time, unknown system.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// A compressor is a megabyte of tables, an unpacker 40 KB: both are worth keeping.
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
	if err := w.Flush(); err != nil { // ends on a byte, with an empty block; Close would write the last one
		return nil, err
	}
	return b.Bytes(), nil
}

// appendTrailer appends what makes a packed body and tail a whole gzip stream.
func (e *Entry) appendTrailer(b, tail []byte) []byte {
	rest, last := tail, false
	for !last { // a stored block holds 64 KiB; without a tail, one that is empty
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

// inflater is an unpacker with its source, so that neither is allocated for a request.
type inflater struct {
	source bytes.Reader
	reader io.ReadCloser
}

// Body unpacks the body.
func (e *Entry) Body() ([]byte, error) { return e.appendBody(nil) }

func (e *Entry) appendBody(b []byte) ([]byte, error) {
	if e.size > maxBody || len(e.compressed) < len(gzipHeader) {
		return nil, fmt.Errorf("cache: unpack: %w", errCorrupt)
	}
	in := inflaters.Get().(*inflater)
	defer inflaters.Put(in)
	in.source.Reset(e.compressed[len(gzipHeader):])
	if in.reader == nil {
		in.reader = flate.NewReader(&in.source)
	} else if err := in.reader.(flate.Resetter).Reset(&in.source, nil); err != nil {
		return nil, fmt.Errorf("cache: unpack: %w", err)
	}
	start := len(b)
	b = append(b, make([]byte, e.size)...)
	// The size is known, so the reader never comes to where the last block is missing.
	if _, err := io.ReadFull(in.reader, b[start:]); err != nil {
		return nil, fmt.Errorf("cache: unpack: %w", err)
	}
	if crc32.ChecksumIEEE(b[start:]) != e.crc {
		return nil, fmt.Errorf("cache: unpack: %w", errCorrupt)
	}
	return b, nil
}
