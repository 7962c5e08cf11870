package main

import (
	"encoding/json"
	"fmt"

	tf "github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// The types of schema.json.gz, which has the shape of `terraform providers schema -json`.
type (
	schema struct {
		Version int64 `json:"version"`
		Block   block `json:"block"`
	}
	block struct {
		Attributes map[string]attribute `json:"attributes"`
		Blocks     map[string]nested    `json:"block_types"`
	}
	attribute struct {
		Type                                    json.RawMessage `json:"type"`
		Required, Optional, Computed, Sensitive bool
		WriteOnly                               bool `json:"write_only"`
	}
	nested struct {
		Block    block  `json:"block"`
		Mode     string `json:"nesting_mode"`
		MinItems int64  `json:"min_items"`
		MaxItems int64  `json:"max_items"`
	}
)

var nestingModes = map[string]tf.SchemaNestedBlockNestingMode{
	"single": tf.SchemaNestedBlockNestingModeSingle,
	"list":   tf.SchemaNestedBlockNestingModeList,
	"set":    tf.SchemaNestedBlockNestingModeSet,
}

func (s schema) toProtocol() (*tf.Schema, error) {
	b, err := s.Block.toProtocol()
	return &tf.Schema{Version: s.Version, Block: b}, err
}

func (b block) toProtocol() (*tf.SchemaBlock, error) {
	out := &tf.SchemaBlock{}
	for name, a := range b.Attributes {
		//nolint:staticcheck // deprecated except for the schema format of provider logs, which this file has
		t, err := tftypes.ParseJSONType(a.Type)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.Attributes = append(out.Attributes, &tf.SchemaAttribute{
			Name: name, Type: t, Required: a.Required, Optional: a.Optional, Computed: a.Computed,
			Sensitive: a.Sensitive, WriteOnly: a.WriteOnly,
		})
	}
	for name, n := range b.Blocks {
		inner, err := n.Block.toProtocol()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out.BlockTypes = append(out.BlockTypes, &tf.SchemaNestedBlock{
			TypeName: name, Block: inner, Nesting: nestingModes[n.Mode], MinItems: n.MinItems, MaxItems: n.MaxItems,
		})
	}
	return out, nil
}
