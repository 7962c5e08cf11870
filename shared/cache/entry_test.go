package cache

import (
	"bytes"
	"slices"
	"testing"
	"time"
)

func sample(t testing.TB) Entry {
	e, err := Pack(200, []byte(`{"listings":[1,2,3]`), []string{"tnt_a", "tnt_b"}, []byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	e.FreshUntil, e.KeptUntil = testStart.Add(time.Minute), testStart.Add(11*time.Minute)
	return e
}

func TestAnEntryIsReadAsItWasWritten(t *testing.T) {
	rated := sample(t)
	rated.RatesUntil = testStart.Add(1234 * time.Millisecond)
	rated.since = testStart.UnixMicro()
	negative, err := Pack(404, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]Entry{"a list": sample(t), "a rated list": rated, "nothing": negative} {
		t.Run(name, func(t *testing.T) {
			got, err := decode(e.encode())
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != e.Status || !got.FreshUntil.Equal(e.FreshUntil) || !got.KeptUntil.Equal(e.KeptUntil) ||
				!got.RatesUntil.Equal(e.RatesUntil) || !bytes.Equal(got.Index, e.Index) {
				t.Errorf("got %+v, want %+v", got, e)
			}
			if !slices.Equal(slices.Collect(got.Owners()), slices.Collect(e.Owners())) {
				t.Errorf("owners %q, want %q", got.owners, e.owners)
			}
			if got.digest != e.digest || got.since != e.since {
				t.Errorf("digest %x since %d, want %x since %d", got.digest, got.since, e.digest, e.since)
			}
			if text(t, got) != text(t, &e) {
				t.Errorf("body %q, want %q", text(t, got), text(t, &e))
			}
		})
	}
}

func TestEveryChangedOrMissingByteIsNoticed(t *testing.T) {
	e := sample(t)
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

func TestABodyIsAtMostTwoMebibytes(t *testing.T) {
	if _, err := Pack(200, make([]byte, maxBody+1), nil, nil); err == nil {
		t.Error("packed more")
	}
	e, err := Pack(200, bytes.Repeat([]byte("ab"), maxBody/2), nil, nil)
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

func TestABodyIsCheckedAgainstWhatWasPacked(t *testing.T) {
	for name, spoil := range map[string]func(*Entry){
		"another checksum": func(e *Entry) { e.crc++ },
		"longer than said": func(e *Entry) { e.size++ },
		"nothing packed":   func(e *Entry) { e.packed = nil },
		"not deflate":      func(e *Entry) { e.packed = slices.Concat(gzipHeader, []byte("\xff\xff\xff")) },
	} {
		t.Run(name, func(t *testing.T) {
			e := sample(t)
			spoil(&e)
			if b, err := e.Body(); err == nil {
				t.Errorf("unpacked %q", b)
			}
			if got := text(t, new(sample(t))); got != `{"listings":[1,2,3]` { // the next user of the same unpacker
				t.Errorf("then %q", got)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	e := sample(f)
	f.Add(e.encode())
	f.Add([]byte{layout})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decode(b)
		if err != nil {
			return
		}
		if again := e.encode(); !bytes.Equal(again[2:checksumAt], b[2:checksumAt]) || !bytes.Equal(again[headerSize:], b[headerSize:]) {
			t.Errorf("read %x, would write %x", b, again)
		}
		e.Body()
	})
}
