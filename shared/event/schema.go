package event

import (
	"embed"
	"io/fs"
)

// schemaFiles holds the JSON Schemas (draft 2020-12) by the path of their address:
// search-executed/v1.json. They describe whole messages as this service writes them and are closed, so
// that nothing leaves unnoticed; a reader should ignore what it does not know, because optional
// properties are added without a new version.
//
//go:embed schemas/*/v*.json
var schemaFiles embed.FS

// SchemaBase is what the address of every schema begins with; its path below Schemas follows.
const SchemaBase = "https://schemas.melmastoon.ghasi.io/bff-consumer/"

// Schemas are the files of all schemas, search-executed/v1.json and so on.
func Schemas() fs.FS {
	files, err := fs.Sub(schemaFiles, "schemas")
	if err != nil {
		panic(err) // unreachable: the name is good
	}
	return files
}

// Validator holds an event against its schema. It is nil in a binary that does not import event/strict, which sets it as it is initialised.
var Validator func(Event) error
