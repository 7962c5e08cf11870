// Command tfstub replaces the google and google-beta providers in tests of Terraform. It serves the
// schema in schema.json.gz, accepts every configuration that fits the schema, and plans new
// resources. It cannot apply. The program's name selects the provider; README.md describes the
// directory layout.
package main

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	tf "github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

//go:embed schema.json.gz
var schemaFile []byte

func main() {
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), "terraform-provider-")
	name, _, _ = strings.Cut(name, "_") // terraform-provider-google-beta_v7.39.0
	s, err := loadProvider("hashicorp/" + name)
	if err != nil {
		log.Fatal(err)
	}
	if err := tf5server.Serve(s.address, func() tf.ProviderServer { return s }); err != nil {
		log.Fatal(err)
	}
}

// server implements the methods that validate, plan and mocked providers call. Any other method
// panics.
type server struct {
	tf.ProviderServer
	address   string
	provider  *tf.Schema
	resources map[string]*tf.Schema
	config    map[string]string // the provider's string arguments: project, region
}

// loadProvider reads the embedded schema of a provider, such as hashicorp/google.
func loadProvider(address string) (*server, error) {
	zip, err := gzip.NewReader(bytes.NewReader(schemaFile))
	if err != nil {
		return nil, err
	}
	var f struct {
		Providers map[string]struct {
			Provider  schema            `json:"provider"`
			Resources map[string]schema `json:"resource_schemas"`
		} `json:"provider_schemas"`
	}
	if err := json.NewDecoder(zip).Decode(&f); err != nil {
		return nil, err
	}
	p, ok := f.Providers[address]
	if !ok {
		return nil, fmt.Errorf("tfstub: no schema of %s", address)
	}
	s := &server{address: address, resources: map[string]*tf.Schema{}}
	if s.provider, err = p.Provider.toProtocol(); err != nil {
		return nil, err
	}
	for name, r := range p.Resources {
		if s.resources[name], err = r.toProtocol(); err != nil {
			return nil, fmt.Errorf("tfstub: %s: %w", name, err)
		}
	}
	return s, nil
}

func (s *server) GetMetadata(context.Context, *tf.GetMetadataRequest) (*tf.GetMetadataResponse, error) {
	out := &tf.GetMetadataResponse{}
	for name := range s.resources {
		out.Resources = append(out.Resources, tf.ResourceMetadata{TypeName: name})
	}
	return out, nil
}

func (s *server) GetProviderSchema(context.Context, *tf.GetProviderSchemaRequest) (*tf.GetProviderSchemaResponse, error) {
	return &tf.GetProviderSchemaResponse{Provider: s.provider, ResourceSchemas: s.resources}, nil
}

func (s *server) GetResourceIdentitySchemas(
	context.Context, *tf.GetResourceIdentitySchemasRequest,
) (*tf.GetResourceIdentitySchemasResponse, error) {
	return &tf.GetResourceIdentitySchemasResponse{}, nil
}

func (s *server) PrepareProviderConfig(
	_ context.Context, r *tf.PrepareProviderConfigRequest,
) (*tf.PrepareProviderConfigResponse, error) {
	return &tf.PrepareProviderConfigResponse{PreparedConfig: r.Config}, nil
}

func (s *server) ConfigureProvider(
	_ context.Context, r *tf.ConfigureProviderRequest,
) (*tf.ConfigureProviderResponse, error) {
	v, err := r.Config.Unmarshal(s.provider.ValueType())
	if err != nil {
		return nil, err
	}
	s.config, err = stringAttributes(v)
	return &tf.ConfigureProviderResponse{}, err
}

func (s *server) StopProvider(context.Context, *tf.StopProviderRequest) (*tf.StopProviderResponse, error) {
	return &tf.StopProviderResponse{}, nil
}

func (s *server) ValidateResourceTypeConfig(
	context.Context, *tf.ValidateResourceTypeConfigRequest,
) (*tf.ValidateResourceTypeConfigResponse, error) {
	return &tf.ValidateResourceTypeConfigResponse{}, nil
}

func (s *server) UpgradeResourceState(
	_ context.Context, r *tf.UpgradeResourceStateRequest,
) (*tf.UpgradeResourceStateResponse, error) {
	typ := s.resources[r.TypeName].ValueType()
	v, err := r.RawState.UnmarshalWithOpts(typ, tf.UnmarshalOpts{})
	if err != nil {
		return nil, err
	}
	d, err := tf.NewDynamicValue(typ, v)
	return &tf.UpgradeResourceStateResponse{UpgradedState: &d}, err
}

func (s *server) PlanResourceChange(
	_ context.Context, r *tf.PlanResourceChangeRequest,
) (*tf.PlanResourceChangeResponse, error) {
	res := s.resources[r.TypeName]
	v, err := r.ProposedNewState.Unmarshal(res.ValueType())
	if err != nil {
		return nil, err
	}
	if v, err = markComputed(res.Block, v); err != nil {
		return nil, err
	}
	if v, err = s.predict(r.TypeName, v); err != nil {
		return nil, err
	}
	d, err := tf.NewDynamicValue(res.ValueType(), v)
	return &tf.PlanResourceChangeResponse{PlannedState: &d, UnsafeToUseLegacyTypeSystem: true}, err
}

// markComputed returns v with an unknown value for each computed attribute that the configuration
// does not set.
func markComputed(b *tf.SchemaBlock, v tftypes.Value) (tftypes.Value, error) {
	if v.IsNull() || !v.IsKnown() {
		return v, nil
	}
	fields := map[string]tftypes.Value{}
	if err := v.As(&fields); err != nil {
		return v, err
	}
	for _, a := range b.Attributes {
		if a.Computed && fields[a.Name].IsNull() {
			fields[a.Name] = tftypes.NewValue(a.Type, tftypes.UnknownValue)
		}
	}
	for _, n := range b.BlockTypes {
		inner := fields[n.TypeName]
		if inner.IsNull() || !inner.IsKnown() {
			continue
		}
		if n.Nesting == tf.SchemaNestedBlockNestingModeSingle {
			one, err := markComputed(n.Block, inner)
			if err != nil {
				return v, err
			}
			fields[n.TypeName] = one
			continue
		}
		var list []tftypes.Value
		if err := inner.As(&list); err != nil {
			return v, err
		}
		for i := range list {
			var err error
			if list[i], err = markComputed(n.Block, list[i]); err != nil {
				return v, err
			}
		}
		fields[n.TypeName] = tftypes.NewValue(inner.Type(), list)
	}
	return tftypes.NewValue(v.Type(), fields), nil
}
