// Command schemagen writes the schema that tfstub serves. It parses the source of the real
// providers, which declare types as Go literals. schemagen does not compile the providers: parsing
// takes seconds, compiling minutes.
//
//	go run ./schemagen -google DIR -beta DIR -types types.txt > schema.json.gz
//
// DIR is the unpacked source of a provider; README.md names the versions and how to download them.
package main

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"strings"
)

// The output has the shape of `terraform providers schema -json`, without descriptions.
type (
	file struct {
		Providers map[string]provider `json:"provider_schemas"`
	}
	provider struct {
		Provider  schema            `json:"provider"`
		Resources map[string]schema `json:"resource_schemas"`
	}
	schema struct {
		Version int64  `json:"version"`
		Block   *block `json:"block"`
	}
	block struct {
		Attributes map[string]attribute `json:"attributes,omitempty"`
		Blocks     map[string]nested    `json:"block_types,omitempty"`
	}
	attribute struct {
		Type      any  `json:"type"`
		Required  bool `json:"required,omitempty"`
		Optional  bool `json:"optional,omitempty"`
		Computed  bool `json:"computed,omitempty"`
		Sensitive bool `json:"sensitive,omitempty"`
		WriteOnly bool `json:"write_only,omitempty"`
	}
	nested struct {
		Block    *block `json:"block"`
		Mode     string `json:"nesting_mode"`
		MinItems int    `json:"min_items,omitempty"`
		MaxItems int    `json:"max_items,omitempty"`
	}
)

func main() {
	log.SetFlags(0)
	google := flag.String("google", "", "source of the google provider")
	beta := flag.String("beta", "", "source of the google-beta provider")
	types := flag.String("types", "types.txt", "one `google TYPE` or `google-beta TYPE` a line")
	flag.Parse()
	if err := run(*google, *beta, *types); err != nil {
		log.Fatal(err)
	}
}

func run(google, beta, types string) error {
	text, err := os.ReadFile(types)
	if err != nil {
		return err
	}
	sources := map[string]*providerSource{"google": {root: google}, "google-beta": {root: beta}}
	out := file{map[string]provider{}}
	for name, s := range sources {
		if err := s.parseAll(); err != nil {
			return err
		}
		out.Providers["hashicorp/"+name] = provider{
			// The arguments that terraform/ may set; tests do not check the provider's
			// configuration.
			Provider:  schema{Block: optionalStrings("project", "region", "zone", "user_project_override", "billing_project")},
			Resources: map[string]schema{},
		}
	}
	for line := range strings.Lines(string(text)) {
		name, typ, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		b, err := sources[name].resource(typ)
		if err != nil {
			return fmt.Errorf("%s: %w", typ, err)
		}
		out.Providers["hashicorp/"+name].Resources[typ] = schema{Block: b}
	}
	zip := gzip.NewWriter(os.Stdout)
	if err := json.NewEncoder(zip).Encode(out); err != nil {
		return err
	}
	return zip.Close()
}

func optionalStrings(names ...string) *block {
	b := &block{Attributes: map[string]attribute{}}
	for _, name := range names {
		b.Attributes[name] = attribute{Type: "string", Optional: true}
	}
	return b
}
