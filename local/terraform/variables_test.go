package terraform

import (
	"fmt"
	"maps"
	"slices"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
)

// notDeployed are variables that the code reads and Terraform does not set, and why.
var notDeployed = map[string]string{
	"DATABASE_URL":    "of the local system; the deployed one has CLOUDSQL_INSTANCE",
	"FLAGS_FILE":      "of the local system; the deployed one has REMOTE_CONFIG_PROJECT",
	"FUNCTION_TARGET": "set by the platform's packer",
	"GOGC":            "for whoever measures: the code has a value of its own",
	"K_REVISION":      "set by the platform",
	"K_SERVICE":       "set by the platform",
	"RECAPTCHA_URL":   "for tests; the code has Google's",
	"VALIDATE_EVENTS": "of the local system: no deployed program has the schemas (decision 29)",
}

// unusedByFolder are variables that the source of one folder names and does not use.
var unusedByFolder = map[string]string{
	"relay DATABASE_MAX_CONNS": "RELAY_MAX_CONNS stands for it",
}

// publicOnly are variables that mean something behind the gateway alone.
var publicOnly = []string{"PAGE_ORIGINS", "EDGE_SECRET"}

// diffVariables compares what functions are given with what their source reads. Functions of one folder share its source, so what it
// reads must be given to one of them at least.
func diffVariables(root string, deployed []Function) (found []string, _ error) {
	all, err := repository.FunctionFolders(root)
	if err != nil {
		return nil, err
	}
	withEdge := slices.ContainsFunc(deployed, func(f Function) bool { return f.Secrets["EDGE_SECRET"] != "" })
	for _, folder := range all {
		read, err := folderEnvVars(root, folder)
		if err != nil {
			return nil, err
		}
		given := map[string]bool{}
		public := false
		for _, f := range deployed {
			if f.Folder != folder {
				continue
			}
			public = public || f.Kind == "public"
			for _, name := range slices.Concat(slices.Collect(maps.Keys(f.Environment)), slices.Collect(maps.Keys(f.Secrets))) {
				given[name] = true
				if !read[name] {
					found = append(found, fmt.Sprintf("%s is given %s, which functions/%s does not read", f.EntryPoint, name, folder))
				}
				if notDeployed[name] != "" {
					found = append(found, fmt.Sprintf("%s is given %s, which is %s", f.EntryPoint, name, notDeployed[name]))
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(read)) {
			switch {
			case given[name], notDeployed[name] != "", unusedByFolder[folder+" "+name] != "":
			case slices.Contains(publicOnly, name) && !public:
			case name == "EDGE_SECRET" && !withEdge:
			default:
				found = append(found, fmt.Sprintf("functions/%s reads %s, and none of its functions is given it", folder, name))
			}
		}
	}
	return found, nil
}
