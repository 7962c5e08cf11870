package server

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/runfile"
	_ "melmastoon.ghasi.io/bff-consumer/shared/event/strict" // VALIDATE_EVENTS below
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
)

// localEnvironment is the default of ENVIRONMENT and the first part of every Redis key.
const localEnvironment = "local"

// functionEnv returns the environment of the functions, for this process and for RunFolder. urls
// holds the upstreams by name. functionEnv reads or creates the file of secrets and returns its
// error.
func functionEnv(state string, stores dataStores, broker *pubsub.Broker, urls map[string]string, flagsPath string) (map[string]string, error) {
	env := map[string]string{
		"REDIS_ADDR":           stores.redis,
		"DATABASE_URL":         stores.database,
		"SEARCH_URL":           urls["search"],
		"PRICING_URL":          urls["pricing"],
		"PROPERTY_URL":         urls["property"],
		"THEME_URL":            urls["theme"],
		"UPSTREAM_AUTH":        "none",
		"PUBSUB_PROJECT":       broker.Project,
		"PUBSUB_EMULATOR_HOST": broker.Host, // read by the Pub/Sub client library
		"FLAGS_FILE":           flagsPath,
		// an event that breaks its schema fails at its producer, not at a consumer
		"VALIDATE_EVENTS": "true",
	}
	secrets, err := loadSecrets(filepath.Join(state, "secrets.json"))
	if err != nil {
		return nil, err
	}
	// Variables of the developer's environment take precedence over these defaults.
	for name, value := range map[string]string{
		"ENVIRONMENT":  localEnvironment,
		"SESSION_KEYS": secrets["SESSION_KEYS"],
		"PEPPERS":      secrets["PEPPERS"],
		"HANDOFF_KEYS": secrets["HANDOFF_KEYS"],
		"HANDOFF_LINK": handoff.DefaultLink,
		"TRUSTED_HOPS": "1", // the local gateway
	} {
		env[name] = value
		if set := os.Getenv(name); set != "" {
			env[name] = set
		}
	}
	return env, nil
}

// loadSecrets reads the secrets from a file and adds missing secrets to the file, so a guest's
// cookie stays valid in the next run. It returns an error for a file that is not JSON rather than
// replace it.
func loadSecrets(path string) (map[string]string, error) {
	secrets := map[string]string{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &secrets)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("server: read %s: %w", path, err)
	}
	changed := false
	for name, key := range map[string]string{
		"SESSION_KEYS": "local-1",
		"PEPPERS":      "local-1",
		"HANDOFF_KEYS": "hmac-" + time.Now().UTC().Format("2006-01"),
	} {
		if secrets[name] != "" {
			continue
		}
		var secret [32]byte
		rand.Read(secret[:])
		secrets[name] = key + ":" + base64.StdEncoding.EncodeToString(secret[:])
		changed = true
	}
	if !changed {
		return secrets, nil
	}
	return secrets, runfile.WriteJSON(path, secrets)
}
