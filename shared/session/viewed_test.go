package session

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/instant"
)

// viewed is hotel n, looked at so many seconds after noon.
func viewed(n, second int) Viewed {
	v := hotel(n)
	v.ViewedAt = instant.Text(time.Date(2026, 4, 23, 12, 0, second, 0, time.UTC))
	return v
}

func TestAViewIsListedWhereItBelongsHoweverLateItIsReported(t *testing.T) {
	for name, c := range map[string]struct{ reported, want []Viewed }{
		"in order":                       {[]Viewed{viewed(1, 1), viewed(2, 2)}, []Viewed{viewed(2, 2), viewed(1, 1)}},
		"the older one late":             {[]Viewed{viewed(2, 2), viewed(1, 1)}, []Viewed{viewed(2, 2), viewed(1, 1)}},
		"between two":                    {[]Viewed{viewed(1, 1), viewed(3, 3), viewed(2, 2)}, []Viewed{viewed(3, 3), viewed(2, 2), viewed(1, 1)}},
		"again":                          {[]Viewed{viewed(1, 1), viewed(2, 2), viewed(1, 3)}, []Viewed{viewed(1, 3), viewed(2, 2)}},
		"the same report twice":          {[]Viewed{viewed(1, 1), viewed(2, 2), viewed(1, 1)}, []Viewed{viewed(2, 2), viewed(1, 1)}},
		"an older view of the same":      {[]Viewed{viewed(1, 3), viewed(2, 2), viewed(1, 1)}, []Viewed{viewed(1, 3), viewed(2, 2)}},
		"a later view of the same":       {[]Viewed{viewed(1, 1), viewed(3, 3), viewed(1, 2)}, []Viewed{viewed(3, 3), viewed(1, 2)}},
		"at one time, the last in front": {[]Viewed{viewed(1, 1), viewed(2, 1), viewed(3, 0)}, []Viewed{viewed(2, 1), viewed(1, 1), viewed(3, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			alone, together := d.visit(t, ""), d.visit(t, "")
			for _, v := range c.reported {
				d.push(t, alone, v)
			}
			d.push(t, together, c.reported...)
			for name, s := range map[string]*Session{"one by one": alone, "together": together} {
				var got []Viewed
				for _, entry := range d.lists(t, s.ID).Recent(s) {
					var v Viewed
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

func TestALateReportDoesNotPushANewerViewOffAFullList(t *testing.T) {
	d := newDesk(t)
	s := d.visit(t, "")
	for n := range maxViewed {
		d.push(t, s, viewed(n, 10+n))
	}
	before := d.lists(t, s.ID).Recent(s)
	d.push(t, s, viewed(99, 1))
	if diff := cmp.Diff(before, d.lists(t, s.ID).Recent(s)); diff != "" {
		t.Error(diff)
	}
}
