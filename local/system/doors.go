package system

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/local/tenant"
	"melmastoon.ghasi.io/bff-consumer/shared/caller/issuer"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// doorsBase is what the paths of private doors begin with. On the platform they have an address of their own, which the
// API gateway does not route to.
const doorsBase = "/internal"

// publicAPI and privateAPI are the two descriptions of what is served.
func (o Options) publicAPI() string  { return filepath.Join(o.Root, "api", "consumer.openapi.yaml") }
func (o Options) privateAPI() string { return filepath.Join(o.Root, "api", "internal.openapi.yaml") }

// fronts are the public API and the private doors, over all functions.
func (o Options) fronts() (public, private http.Handler, err error) {
	operations, err := gateway.Operations(o.publicAPI())
	if err != nil {
		return nil, nil, err
	}
	if public, err = gateway.New(web.Base, operations, web.Functions()); err != nil {
		return nil, nil, err
	}
	if operations, err = gateway.Operations(o.privateAPI()); err != nil {
		return nil, nil, err
	}
	private, err = gateway.New(doorsBase, operations, web.Functions())
	return public, private, err
}

// openTenant makes the BFF of a tenant and adds to env what lets its calls in: the keys of an issuer that takes the
// place of Google's for this run.
func openTenant(state, door string, env map[string]string) (*tenant.BFF, error) {
	id, err := issuer.New("local-" + rand.Text()[:8])
	if err != nil {
		return nil, err
	}
	keySet := filepath.Join(state, "caller-keys.json")
	if err := os.WriteFile(keySet, id.KeySet(), 0o600); err != nil {
		return nil, err
	}
	env["CALLER_ISSUER"], env["CALLER_KEYS"] = issuer.Name, keySet
	env["CALLER_AUDIENCE"], env["CALLER_ACCOUNTS"] = tenant.Audience, tenant.Account
	keys, err := handoff.ParseKeys(env["HANDOFF_KEYS"])
	if err != nil {
		return nil, err
	}
	return tenant.New(door, keys, id, time.Now), nil
}
