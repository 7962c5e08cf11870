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

// localEnvironment is the first part of every Redis key of a local system.
const localEnvironment = "local"

// functionEnv is what the functions read, in this process and in those started beside it.
func functionEnv(state string, kept dataStores, pubsub *pubsub.Broker, urls map[string]string, flagsPath string) (map[string]string, error) {
	env := map[string]string{
		"REDIS_ADDR":           kept.redis,
		"DATABASE_URL":         kept.database,
		"SEARCH_URL":           urls["search"],
		"PRICING_URL":          urls["pricing"],
		"PROPERTY_URL":         urls["property"],
		"THEME_URL":            urls["theme"],
		"UPSTREAM_AUTH":        "none",
		"PUBSUB_PROJECT":       pubsub.Project,
		"PUBSUB_EMULATOR_HOST": pubsub.Host, // read by the client itself
		"FLAGS_FILE":           flagsPath,
		// A developer hears of an event that breaks its schema at once, and not from whoever reads it.
		"VALIDATE_EVENTS": "true",
	}
	secrets, err := loadSecrets(filepath.Join(state, "secrets.json"))
	if err != nil {
		return nil, err
	}
	// What a person sets wins; the rest has a value that suits one machine.
	for name, value := range map[string]string{
		"ENVIRONMENT":  localEnvironment,
		"SESSION_KEYS": secrets["SESSION_KEYS"],
		"PEPPERS":      secrets["PEPPERS"],
		"HANDOFF_KEYS": secrets["HANDOFF_KEYS"],
		"HANDOFF_LINK": handoff.DefaultLink,
		"TRUSTED_HOPS": "1", // the gateway of this machine
	} {
		env[name] = value
		if set := os.Getenv(name); set != "" {
			env[name] = set
		}
	}
	return env, nil
}

// loadSecrets reads the secrets of this machine, or makes them, so that a guest's cookie outlives a run.
func loadSecrets(path string) (map[string]string, error) {
	secrets := map[string]string{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &secrets)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("system: read %s: %w", path, err)
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
