package session

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// viewedAt is hotel n, looked at so many seconds after noon.
func viewedAt(n, second int) ViewedProperty {
	v := viewedHotel(n)
	v.ViewedAt = timestamp.Format(time.Date(2026, 4, 23, 12, 0, second, 0, time.UTC))
	return v
}

func TestStoreEnqueueViewed_OrdersByViewTime(t *testing.T) {
	for name, c := range map[string]struct{ reported, want []ViewedProperty }{
		"in order":                       {[]ViewedProperty{viewedAt(1, 1), viewedAt(2, 2)}, []ViewedProperty{viewedAt(2, 2), viewedAt(1, 1)}},
		"the older one late":             {[]ViewedProperty{viewedAt(2, 2), viewedAt(1, 1)}, []ViewedProperty{viewedAt(2, 2), viewedAt(1, 1)}},
		"between two":                    {[]ViewedProperty{viewedAt(1, 1), viewedAt(3, 3), viewedAt(2, 2)}, []ViewedProperty{viewedAt(3, 3), viewedAt(2, 2), viewedAt(1, 1)}},
		"again":                          {[]ViewedProperty{viewedAt(1, 1), viewedAt(2, 2), viewedAt(1, 3)}, []ViewedProperty{viewedAt(1, 3), viewedAt(2, 2)}},
		"the same report twice":          {[]ViewedProperty{viewedAt(1, 1), viewedAt(2, 2), viewedAt(1, 1)}, []ViewedProperty{viewedAt(2, 2), viewedAt(1, 1)}},
		"an older view of the same":      {[]ViewedProperty{viewedAt(1, 3), viewedAt(2, 2), viewedAt(1, 1)}, []ViewedProperty{viewedAt(1, 3), viewedAt(2, 2)}},
		"a later view of the same":       {[]ViewedProperty{viewedAt(1, 1), viewedAt(3, 3), viewedAt(1, 2)}, []ViewedProperty{viewedAt(3, 3), viewedAt(1, 2)}},
		"at one time, the last in front": {[]ViewedProperty{viewedAt(1, 1), viewedAt(2, 1), viewedAt(3, 0)}, []ViewedProperty{viewedAt(2, 1), viewedAt(1, 1), viewedAt(3, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newHarness(t)
			alone, together := d.request(t, ""), d.request(t, "")
			for _, v := range c.reported {
				d.pushViewed(t, alone, v)
			}
			d.pushViewed(t, together, c.reported...)
			for name, s := range map[string]*Session{"one by one": alone, "together": together} {
				var got []ViewedProperty
				for _, entry := range d.lists(t, s.ID).RecentlyViewed(s) {
					var v ViewedProperty
					if err := json.Unmarshal(entry, &v); err != nil {
						t.Fatal(err)
					}
					got = append(got, v)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func TestStoreEnqueueViewed_LateReportDoesNotEvictNewerView(t *testing.T) {
	d := newHarness(t)
	s := d.request(t, "")
	for n := range maxViewed {
		d.pushViewed(t, s, viewedAt(n, 10+n))
	}
	before := d.lists(t, s.ID).RecentlyViewed(s)
	d.pushViewed(t, s, viewedAt(99, 1))
	if diff := cmp.Diff(before, d.lists(t, s.ID).RecentlyViewed(s)); diff != "" {
		t.Error(diff)
	}
}
