package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// requestBudget is the longest time of a request, network included.
const requestBudget = 2500*time.Millisecond + 250*time.Millisecond

// faults makes upstreams fail.
func faults(t *tour) {
	query := with(stay(), "geo", city("Herat"))
	t.step("Search while pricing hangs", "200 within 2.5 s, no rates, degraded names pricing", func() (string, error) {
		if err := t.misbehave("pricing", map[string]any{"hang": true}); err != nil {
			return "", err
		}
		began := time.Now()
		a, l, err := t.search(query)
		if err != nil {
			return "", err
		}
		took := time.Since(began)
		got := fmt.Sprintf("%d within %v, %d rates, %s", a.status, took.Round(time.Millisecond), l.rates(), l.degraded())
		if took > requestBudget || l.rates() > 0 || len(l.Degraded) != 1 || l.Degraded[0].Part != "pricing" {
			err = errors.New("not a list without rates in time")
		}
		return got, err
	})
	t.step("Search after pricing is back", "rates again, a few seconds later at most", func() (string, error) {
		if err := t.heal("pricing"); err != nil {
			return "", err
		}
		return t.poll(10*time.Second, func() (string, error) {
			a, l, err := t.search(query)
			if err == nil && (l.rates() == 0 || len(l.Degraded) > 0) {
				err = errors.New("no rates yet")
			}
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%d, %d rates, %s", a.status, l.rates(), l.degraded()), nil
		})
	})
	t.step("Search what is in no cache while search-aggregation fails", "503 UPSTREAM_UNAVAILABLE, Retry-After", func() (string, error) {
		if err := t.misbehave("search", map[string]any{"errorRate": 1}); err != nil {
			return "", err
		}
		a, err := t.send(http.MethodPost, api+"/search", with(stay(), "geo", city("Dushanbe")))
		if err != nil {
			return "", err
		}
		got := fmt.Sprintf("%s, Retry-After: %s", a.says(), a.header.Get("Retry-After"))
		if err = a.want(http.StatusServiceUnavailable, "UPSTREAM_UNAVAILABLE"); err == nil && a.header.Get("Retry-After") == "" {
			err = errors.New("no Retry-After")
		}
		return got, err
	})
	t.step("Search the first list while search-aggregation fails", "200 from the cache", func() (string, error) {
		a, l, err := t.search(query)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d, X-Cache: %s, %d hotels", a.status, a.header.Get("X-Cache"), len(l.Listings)), nil
	})
}

// limits turns campaign mode on and lowers a limit.
func limits(t *tour) {
	t.step("Send a handoff without a key in campaign mode", "400 IDEMPOTENCY_KEY_REQUIRED, RateLimit-Limit: 8 instead of 10", func() (string, error) {
		_, l, err := t.search(with(stay(), "geo", city("Kabul"))) // for the cookie
		if err == nil && len(l.Listings) == 0 {
			err = errors.New("no hotels")
		}
		if err == nil {
			err = t.setFlags(map[string]any{"campaignMode": true, "limitsEnabled": true})
		}
		if err != nil {
			return "", err
		}
		a, err := t.send(http.MethodPost, api+"/handoff",
			with(stay(), "propertyId", l.Listings[0].PropertyID, "tenantId", l.Listings[0].TenantID))
		if err != nil {
			return "", err
		}
		limit := a.header.Get("RateLimit-Limit")
		if err = a.want(http.StatusBadRequest, "IDEMPOTENCY_KEY_REQUIRED"); err == nil && limit != "8" {
			err = errors.New("not the limit of campaign mode")
		}
		return fmt.Sprintf("%s, RateLimit-Limit: %s", a.says(), limit), err
	})
	t.step("Read the session with a limit of 4 a minute, a burst of 1", "429 RATE_LIMITED with Retry-After at the second request", func() (string, error) {
		if err := t.setFlags(map[string]any{"limits": map[string]any{"read": map[string]any{"cookie": 4}}}); err != nil {
			return "", err
		}
		for range 3 {
			a, err := t.send(http.MethodGet, api+"/session", nil)
			if err != nil {
				return "", err
			}
			if a.status == http.StatusTooManyRequests {
				got := fmt.Sprintf("%s, Retry-After: %s", a.says(), a.header.Get("Retry-After"))
				return got, a.want(http.StatusTooManyRequests, "RATE_LIMITED")
			}
			if err := a.want(http.StatusOK, ""); err != nil {
				return "", err
			}
		}
		return "", errors.New("all three requests passed")
	})
}

// suspension suspends a tenant and reinstates it. The last event of the chapter is always the
// reinstatement.
func suspension(t *tour) {
	query := with(stay(), "geo", city("Kabul"))
	var hotel card
	shows := func(l list) bool {
		return slices.ContainsFunc(l.Listings, func(c card) bool { return c.TenantID == hotel.TenantID })
	}
	handoff := func() (*answer, error) {
		return t.send(http.MethodPost, api+"/handoff", with(stay(), "propertyId", hotel.PropertyID, "tenantId", hotel.TenantID),
			"Idempotency-Key", fmt.Sprintf("tour-%d", time.Now().UnixNano()))
	}
	t.step("Suspend the tenant of a listed hotel", "the event is delivered", func() (string, error) {
		_, l, err := t.search(query)
		if err == nil && len(l.Listings) == 0 {
			err = errors.New("no hotels")
		}
		if err != nil {
			return "", err
		}
		hotel = l.Listings[0]
		t.saved = append(t.saved, func(t *tour) error { return reinstate(hotel.TenantID)(t) })
		return t.event("melmastoon.tenant.suspended.v1", map[string]any{
			"tenantId": hotel.TenantID, "reason": "billing-overdue", "suspendedAt": now(),
		})
	})
	t.step("Search again", "200, no hotel of the tenant", func() (string, error) {
		a, l, err := t.search(query)
		if err == nil && shows(l) {
			err = errors.New("the tenant is shown")
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d, %d hotels", a.status, len(l.Listings)), nil
	})
	t.step("Open the hotel's page", "404 RESOURCE_NOT_FOUND", func() (string, error) {
		a, err := t.send(http.MethodGet, api+"/hotels/"+hotel.PropertyID+"?currency=USD&locale=en", nil)
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusNotFound, "RESOURCE_NOT_FOUND")
	})
	t.step("Ask for a handoff to the tenant", "403 TENANT_SUSPENDED", func() (string, error) {
		a, err := handoff()
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusForbidden, "TENANT_SUSPENDED")
	})
	t.step("Reinstate the tenant", "the event is delivered", func() (string, error) {
		return t.event("melmastoon.tenant.reinstated.v1", map[string]any{"tenantId": hotel.TenantID, "reinstatedAt": now()})
	})
	t.step("Search again", "200, the tenant's hotel is listed", func() (string, error) {
		a, l, err := t.search(query)
		if err == nil && !shows(l) {
			err = errors.New("the tenant is missing")
		}
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d, %d hotels", a.status, len(l.Listings)), nil
	})
	t.step("Ask for a handoff again", "201", func() (string, error) {
		a, err := handoff()
		if err != nil {
			return "", err
		}
		return a.says(), a.want(http.StatusCreated, "")
	})
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// reinstate publishes a reinstatement: harmless when the tenant is reinstated already.
func reinstate(tenant string) func(*tour) error {
	return put(http.MethodPost, local+"/events", map[string]any{
		"subject": "melmastoon.tenant.reinstated.v1", "payload": map[string]any{"tenantId": tenant, "reinstatedAt": now()},
	})
}

// event publishes an event of the platform and waits until its function has acknowledged it.
func (t *tour) event(subject string, payload map[string]any) (string, error) {
	a, err := t.send(http.MethodPost, local+"/events", map[string]any{"subject": subject, "payload": payload})
	if err == nil {
		err = a.want(http.StatusOK, "")
	}
	if err != nil {
		return "", err
	}
	sent, err := decode[struct {
		EventID string `json:"eventId"`
	}](a)
	if err != nil {
		return "", err
	}
	return t.poll(15*time.Second, func() (string, error) {
		var known struct {
			Events []struct {
				State string `json:"state"`
			} `json:"events"`
		}
		if err := t.get("/events?eventId="+sent.EventID, &known); err != nil {
			return "", err
		}
		if len(known.Events) == 0 || known.Events[0].State != "delivered" {
			return "", errors.New("the event is not delivered")
		}
		return sent.EventID + " delivered", nil
	})
}
