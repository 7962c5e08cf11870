package terraform

import (
	"fmt"
	"maps"
	"slices"

	"melmastoon.ghasi.io/bff-consumer/local/repository"
)

// notDeployed maps variables that the code reads and Terraform does not set to the reason.
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

// unusedByFolder lists variables that the source of a folder names without use.
var unusedByFolder = map[string]string{
	"relay DATABASE_MAX_CONNS":   "RELAY_MAX_CONNS replaces it",
	"migrate DATABASE_MAX_CONNS": "its pool has two connections",
	"sweep DATABASE_MAX_CONNS":   "its pools have one connection",
}

// publicOnly are variables that only functions behind the gateway need.
var publicOnly = []string{"PAGE_ORIGINS", "EDGE_SECRET"}

// diffVariables compares the variables of functions with the variables that their source reads. The
// functions of a folder share the source, so at least one function needs each variable.
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
