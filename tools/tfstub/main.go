// Command tfstub stands in for the google and google-beta providers where Terraform is tested: it serves the schema kept
// in schema.json.gz, accepts every configuration that the schema accepts, and plans resources that do not exist yet.
// It cannot apply. The name it is started by says which provider it is; README.md says how to lay it out.
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
var fixture []byte

func main() {
	name := strings.TrimPrefix(filepath.Base(os.Args[0]), "terraform-provider-")
	name, _, _ = strings.Cut(name, "_") // terraform-provider-google-beta_v7.39.0
	s, err := load("hashicorp/" + name)
	if err != nil {
		log.Fatal(err)
	}
	if err := tf5server.Serve(s.address, func() tf.ProviderServer { return s }); err != nil {
		log.Fatal(err)
	}
}

// server has the methods that validate, plan and a mocked provider call; any other ends the process.
type server struct {
	tf.ProviderServer
	address   string
	provider  *tf.Schema
	resources map[string]*tf.Schema
	config    map[string]string // of the provider: project, region
}

func load(address string) (*server, error) {
	zip, err := gzip.NewReader(bytes.NewReader(fixture))
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
	if s.provider, err = p.Provider.translate(); err != nil {
		return nil, err
	}
	for name, r := range p.Resources {
		if s.resources[name], err = r.translate(); err != nil {
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
	s.config, err = texts(v)
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
	if v, err = later(res.Block, v); err != nil {
		return nil, err
	}
	if v, err = s.foresee(r.TypeName, v); err != nil {
		return nil, err
	}
	d, err := tf.NewDynamicValue(res.ValueType(), v)
	return &tf.PlanResourceChangeResponse{PlannedState: &d, UnsafeToUseLegacyTypeSystem: true}, err
}

// later is v with everything unknown that the real provider would compute and nobody set.
func later(b *tf.SchemaBlock, v tftypes.Value) (tftypes.Value, error) {
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
			one, err := later(n.Block, inner)
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
			if list[i], err = later(n.Block, list[i]); err != nil {
				return v, err
			}
		}
		fields[n.TypeName] = tftypes.NewValue(inner.Type(), list)
	}
	return tftypes.NewValue(v.Type(), fields), nil
}
