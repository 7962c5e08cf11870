package cache

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func sampleEntry(t testing.TB) Entry {
	e, err := NewEntry(200, []byte(`{"listings":[1,2,3]`), []string{"tnt_a", "tnt_b"}, []byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	e.FreshUntil, e.ExpiresAt = testStart.Add(time.Minute), testStart.Add(11*time.Minute)
	return e
}

func TestEntry_EncodeDecodeRoundTrip(t *testing.T) {
	rated := sampleEntry(t)
	rated.RatesFreshUntil = testStart.Add(1234 * time.Millisecond)
	rated.startedAt = testStart.UnixMicro()
	negative, err := NewEntry(404, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]Entry{"list": sampleEntry(t), "list with rates": rated, "negative": negative} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(e.encode())
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != e.Status || !got.FreshUntil.Equal(e.FreshUntil) || !got.ExpiresAt.Equal(e.ExpiresAt) ||
				!got.RatesFreshUntil.Equal(e.RatesFreshUntil) || !bytes.Equal(got.Index, e.Index) {
				t.Errorf("got %+v, want %+v", got, e)
			}
			if !slices.Equal(slices.Collect(got.TenantIDs()), slices.Collect(e.TenantIDs())) {
				t.Errorf("got tenant ids %q, want %q", got.tenantIDs, e.tenantIDs)
			}
			if got.digest != e.digest || got.startedAt != e.startedAt {
				t.Errorf("got digest %x started at %d, want %x started at %d", got.digest, got.startedAt, e.digest, e.startedAt)
			}
			if bodyText(t, got) != bodyText(t, &e) {
				t.Errorf("got body %q, want %q", bodyText(t, got), bodyText(t, &e))
			}
		})
	}
}

func TestEntry_DecodeDetectsEveryChangedByte(t *testing.T) {
	e := sampleEntry(t)
	whole := e.encode()
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 0x10
		if _, err := decode(changed); err == nil {
			t.Errorf("decode accepted an entry with byte %d changed", i)
		}
		if _, err := decode(whole[:i]); err == nil {
			t.Errorf("decode accepted an entry cut to %d bytes", i)
		}
	}
	if _, err := decode(append(bytes.Clone(whole), 0)); err == nil {
		t.Error("decode accepted an entry with an extra byte")
	}
}

func TestNewEntry_RejectsBodyOverTwoMebibytes(t *testing.T) {
	if _, err := NewEntry(200, make([]byte, maxBody+1), nil, nil); err == nil {
		t.Error("NewEntry accepted a body over 2 MiB")
	}
	e, err := NewEntry(200, bytes.Repeat([]byte("ab"), maxBody/2), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := e.Body(); err != nil || len(b) != maxBody {
		t.Errorf("got %d bytes, %v, want %d", len(b), err, maxBody)
	}
	e.size++
	if _, err := e.Body(); err == nil {
		t.Error("Body returned more than 2 MiB")
	}
}

func TestEntry_BodyVerifiesChecksum(t *testing.T) {
	for name, corrupt := range map[string]func(*Entry){
		"another checksum":    func(e *Entry) { e.crc++ },
		"longer than size":    func(e *Entry) { e.size++ },
		"no compressed bytes": func(e *Entry) { e.compressed = nil },
		"not deflate":         func(e *Entry) { e.compressed = slices.Concat(gzipHeader, []byte("\xff\xff\xff")) },
	} {
		t.Run(name, func(t *testing.T) {
			e := sampleEntry(t)
			corrupt(&e)
			if b, err := e.Body(); err == nil {
				t.Errorf("got %q, want an error", b)
			}
			// with the same decompressor
			if got := bodyText(t, new(sampleEntry(t))); got != `{"listings":[1,2,3]` {
				t.Errorf("then a valid entry: got %q", got)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	e := sampleEntry(f)
	f.Add(e.encode())
	f.Add([]byte{formatVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decode(b)
		if err != nil {
			return
		}
		if again := e.encode(); !bytes.Equal(again[2:checksumOffset], b[2:checksumOffset]) || !bytes.Equal(again[headerSize:], b[headerSize:]) {
			t.Errorf("decoded %x, encoded %x", b, again)
		}
		e.Body()
	})
}
