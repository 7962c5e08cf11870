package functest

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
)

// Messages returns the payloads of outbox rows in the order of creation, and validates each payload
// against its schema. subject is the end of a topic's name from a dot on, or a part after a dot
// ("wishlist."); "" selects all rows.
func (h *Harness) Messages(subject string) []json.RawMessage {
	h.T.Helper()
	rows, _ := h.DB.Query(context.Background(), `
		SELECT topic, payload
		FROM bff_consumer.outbox
		WHERE '.' || topic LIKE '%.' || $1 || '%'
		ORDER BY created_at, id`, subject)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (message json.RawMessage, err error) {
		var topic string
		if err = row.Scan(&topic, &message); err != nil {
			return nil, err
		}
		if err := strict.ValidateMessage(topic, message); err != nil {
			h.T.Errorf("%v in %s", err, message)
		}
		return message, nil
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return all
}

// Events returns the decoded Messages.
func (h *Harness) Events(subject string) (all []event.Event) {
	h.T.Helper()
	for _, message := range h.Messages(subject) {
		var e event.Event
		if err := e.UnmarshalJSON(message); err != nil {
			h.T.Fatal(err)
		}
		if err := strict.Validate(e); err != nil {
			h.T.Errorf("%v in %s", err, message)
		}
		all = append(all, e)
	}
	return all
}

// Count returns the number of rows of a table, with or without a condition: "outbox WHERE topic =
// $1".
func (h *Harness) Count(table string, args ...any) (n int) {
	h.T.Helper()
	if err := h.DB.QueryRow(context.Background(), "SELECT count(*) FROM bff_consumer."+table, args...).Scan(&n); err != nil {
		h.T.Fatal(err)
	}
	return n
}

// QueryValue returns the single value of a query.
func QueryValue[T any](h *Harness, sql string, args ...any) (value T) {
	h.T.Helper()
	if err := h.DB.QueryRow(context.Background(), sql, args...).Scan(&value); err != nil {
		h.T.Fatalf("%v: %s", err, sql)
	}
	return value
}

// Exec executes a statement.
func (h *Harness) Exec(sql string, args ...any) {
	h.T.Helper()
	if _, err := h.DB.Exec(context.Background(), sql, args...); err != nil {
		h.T.Fatal(err)
	}
}

// FlushRedis removes all data from Redis.
func (h *Harness) FlushRedis() {
	h.T.Helper()
	if err := h.RDB.FlushAll(context.Background()).Err(); err != nil {
		h.T.Fatal(err)
	}
}

// RecordSuspension inserts the row that the consumer of tenant.suspended.v1 writes to Postgres,
// without the copy in Redis.
func (h *Harness) RecordSuspension(tenant string) {
	h.T.Helper()
	uuid, err := id.UUID(id.Tenant, tenant)
	if err != nil {
		h.T.Fatal(err)
	}
	h.Exec(`
		INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason)
		VALUES ($1, now(), 'billing-overdue')`, uuid)
}

// Suspend does the work of the consumer of tenant.suspended.v1 except for invalidating the cache.
func (h *Harness) Suspend(tenant string) {
	h.T.Helper()
	h.RecordSuspension(tenant)
	if err := h.Tenants().Suspend(context.Background(), tenant); err != nil {
		h.T.Fatal(err)
	}
}

// Reinstate does the work of the consumer of tenant.reinstated.v1 except for invalidating the
// cache.
func (h *Harness) Reinstate(tenant string) {
	h.T.Helper()
	uuid, err := id.UUID(id.Tenant, tenant)
	if err != nil {
		h.T.Fatal(err)
	}
	h.Exec("DELETE FROM bff_consumer.tenant_suspended_cache WHERE tenant_id = $1", uuid)
	if err := h.Tenants().Reinstate(context.Background(), tenant); err != nil {
		h.T.Fatal(err)
	}
}

// Tenants returns a new suspension cache, as in another instance. Call BuildDeps before.
func (h *Harness) Tenants() *tenants.SuspensionCache {
	return tenants.New(h.RDB, h.DB, h.Deps.Keys, h.Now)
}
