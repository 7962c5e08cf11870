package session

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// viewedAt returns a view of property n, so many seconds after noon.
func viewedAt(n, second int) ViewedProperty {
	v := viewedProperty(n)
	v.ViewedAt = timestamp.Format(time.Date(2026, 4, 23, 12, 0, second, 0, time.UTC))
	return v
}

func TestStoreEnqueueViewed_OrdersByViewTime(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, c := range map[string]struct{ reported, want []ViewedProperty }{
		"in order":                     {[]ViewedProperty{viewedAt(1, 1), viewedAt(2, 2)}, []ViewedProperty{viewedAt(2, 2), viewedAt(1, 1)}},
		"older view late":              {[]ViewedProperty{viewedAt(2, 2), viewedAt(1, 1)}, []ViewedProperty{viewedAt(2, 2), viewedAt(1, 1)}},
		"between two views":            {[]ViewedProperty{viewedAt(1, 1), viewedAt(3, 3), viewedAt(2, 2)}, []ViewedProperty{viewedAt(3, 3), viewedAt(2, 2), viewedAt(1, 1)}},
		"second view":                  {[]ViewedProperty{viewedAt(1, 1), viewedAt(2, 2), viewedAt(1, 3)}, []ViewedProperty{viewedAt(1, 3), viewedAt(2, 2)}},
		"same report twice":            {[]ViewedProperty{viewedAt(1, 1), viewedAt(2, 2), viewedAt(1, 1)}, []ViewedProperty{viewedAt(2, 2), viewedAt(1, 1)}},
		"older view of a property":     {[]ViewedProperty{viewedAt(1, 3), viewedAt(2, 2), viewedAt(1, 1)}, []ViewedProperty{viewedAt(1, 3), viewedAt(2, 2)}},
		"later view of a property":     {[]ViewedProperty{viewedAt(1, 1), viewedAt(3, 3), viewedAt(1, 2)}, []ViewedProperty{viewedAt(3, 3), viewedAt(1, 2)}},
		"same time, last report first": {[]ViewedProperty{viewedAt(1, 1), viewedAt(2, 1), viewedAt(3, 0)}, []ViewedProperty{viewedAt(2, 1), viewedAt(1, 1), viewedAt(3, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			separate, batched := h.request(t, ""), h.request(t, "")
			for _, v := range c.reported {
				h.pushViewed(t, separate, v)
			}
			h.pushViewed(t, batched, c.reported...)
			for name, s := range map[string]*Session{"separate calls": separate, "single call": batched} {
				if diff := cmp.Diff(c.want, h.recentlyViewed(t, s)); diff != "" {
					t.Errorf("viewed after %s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestStoreEnqueueViewed_LateReportDoesNotEvictNewerView(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	s := h.request(t, "")
	for n := range maxViewed {
		h.pushViewed(t, s, viewedAt(n, 10+n))
	}
	before := h.recentlyViewed(t, s)
	h.pushViewed(t, s, viewedAt(99, 1))
	if diff := cmp.Diff(before, h.recentlyViewed(t, s)); diff != "" {
		t.Errorf("viewed (-before +after):\n%s", diff)
	}
}
