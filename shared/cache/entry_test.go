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
	for name, e := range map[string]Entry{"a list": sampleEntry(t), "a rated list": rated, "nothing": negative} {
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
				t.Errorf("owners %q, want %q", got.tenantIDs, e.tenantIDs)
			}
			if got.digest != e.digest || got.startedAt != e.startedAt {
				t.Errorf("digest %x since %d, want %x since %d", got.digest, got.startedAt, e.digest, e.startedAt)
			}
			if bodyText(t, got) != bodyText(t, &e) {
				t.Errorf("body %q, want %q", bodyText(t, got), bodyText(t, &e))
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
			t.Errorf("byte %d changed: accepted", i)
		}
		if _, err := decode(whole[:i]); err == nil {
			t.Errorf("cut to %d bytes: accepted", i)
		}
	}
	if _, err := decode(append(bytes.Clone(whole), 0)); err == nil {
		t.Error("one byte more: accepted")
	}
}

func TestNewEntry_RejectsBodyOverTwoMebibytes(t *testing.T) {
	if _, err := NewEntry(200, make([]byte, maxBody+1), nil, nil); err == nil {
		t.Error("packed more")
	}
	e, err := NewEntry(200, bytes.Repeat([]byte("ab"), maxBody/2), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := e.Body(); err != nil || len(b) != maxBody {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	e.size++
	if _, err := e.Body(); err == nil {
		t.Error("unpacked more")
	}
}

func TestEntry_BodyVerifiesChecksum(t *testing.T) {
	for name, spoil := range map[string]func(*Entry){
		"another checksum": func(e *Entry) { e.crc++ },
		"longer than said": func(e *Entry) { e.size++ },
		"nothing packed":   func(e *Entry) { e.compressed = nil },
		"not deflate":      func(e *Entry) { e.compressed = slices.Concat(gzipHeader, []byte("\xff\xff\xff")) },
	} {
		t.Run(name, func(t *testing.T) {
			e := sampleEntry(t)
			spoil(&e)
			if b, err := e.Body(); err == nil {
				t.Errorf("unpacked %q", b)
			}
			if got := bodyText(t, new(sampleEntry(t))); got != `{"listings":[1,2,3]` { // the next user of the same unpacker
				t.Errorf("then %q", got)
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
			t.Errorf("read %x, would write %x", b, again)
		}
		e.Body()
	})
}
