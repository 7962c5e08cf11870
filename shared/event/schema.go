package event

import (
	"embed"
	"io/fs"
)

// schemaFiles holds the JSON Schemas (draft 2020-12) by the path of their address, such as
// search-executed/v1.json. A schema describes a whole message and forbids additional properties, so
// that no field leaves unnoticed. Consumers should ignore unknown properties, because new optional
// properties do not raise the version.
//
//go:embed schemas/*/v*.json
var schemaFiles embed.FS

// SchemaBase is the prefix of every schema's address. The path below Schemas follows.
const SchemaBase = "https://schemas.melmastoon.ghasi.io/bff-consumer/"

// Schemas returns the files of all schemas, such as search-executed/v1.json, from the memory of the
// binary. Schemas never fails. Safe for concurrent use.
func Schemas() fs.FS {
	files, err := fs.Sub(schemaFiles, "schemas")
	if err != nil {
		panic(err) // unreachable: the name is valid
	}
	return files
}

// Validator validates an event against its schema. Package event/strict sets Validator in init; a
// binary without event/strict has a nil Validator.
var Validator func(Event) error
