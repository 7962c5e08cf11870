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
		t.Fatal(first, err)
	}
	if again, err := d.Decode(pack(`{"Name":"a"}`)); again != first || err != nil {
		t.Errorf("the same body again: %p, want %p: %v", again, first, err)
	}
	if other, err := d.Decode(pack(`{"Name":"b"}`)); err != nil || other.Name != "b" {
		t.Errorf("another body: %v %v", other, err)
	}
	for range 2 { // a failure is not kept for an answer
		if v, err := d.Decode(pack(`{"Name":`)); err == nil {
			t.Errorf("half a body says %v", v)
		}
	}
	cut := pack(`{"Name":"something longer"}`)
	cut.compressed = cut.compressed[:len(cut.compressed)/2]
	if v, err := d.Decode(cut); err == nil {
		t.Errorf("half a packed body says %v", v)
	}
}
