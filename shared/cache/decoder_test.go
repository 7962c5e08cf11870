package cache

import "testing"

func TestDecoder_DecodesEachBodyOnce(t *testing.T) {
	type thing struct{ Name string }
	pack := func(body string) *Entry {
		t.Helper()
		e, err := NewEntry(200, []byte(body), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return &e
	}
	d := NewDecoder[thing](2)
	first, err := d.Decode(pack(`{"Name":"a"}`))
	if err != nil || first.Name != "a" {
		t.Fatalf("got %v, %v, want Name a", first, err)
	}
	if again, err := d.Decode(pack(`{"Name":"a"}`)); again != first || err != nil {
		t.Errorf("decoding the same body again: got %p, %v, want %p", again, err, first)
	}
	if other, err := d.Decode(pack(`{"Name":"b"}`)); err != nil || other.Name != "b" {
		t.Errorf("decoding another body: got %v, %v, want Name b", other, err)
	}
	for range 2 { // the decoder must not cache a failure
		if v, err := d.Decode(pack(`{"Name":`)); err == nil {
			t.Errorf("decoding half a body: got %v, want an error", v)
		}
	}
	cut := pack(`{"Name":"something longer"}`)
	cut.compressed = cut.compressed[:len(cut.compressed)/2]
	if v, err := d.Decode(cut); err == nil {
		t.Errorf("decoding a truncated compressed body: got %v, want an error", v)
	}
}
