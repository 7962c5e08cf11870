package main

import (
	"fmt"
	"strings"
)

// parseArgs parses the arguments. The flag package cannot do so, because --bots, --humans and
// --headers take all files up to the next flag.
func parseArgs(args []string) (o options, err error) {
	single := map[string]*string{"--log": &o.Log, "--root": &o.Root}
	lists := map[string]*[]string{"--bots": &o.Bots, "--humans": &o.Humans, "--headers": &o.Headers}
	switches := map[string]*bool{"--json": &o.JSON, "--rows": &o.Rows}
	for len(args) > 0 {
		name, value, given := strings.Cut(args[0], "=")
		if strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "--") {
			name = "-" + name
		}
		args = args[1:]
		if given {
			args = append([]string{value}, args...)
		}
		end := 0
		for end < len(args) && !strings.HasPrefix(args[end], "-") {
			end++
		}
		switch {
		case lists[name] != nil && end > 0:
			*lists[name] = append(*lists[name], args[:end]...)
		case single[name] != nil && end == 1:
			*single[name] = args[0]
		case switches[name] != nil && end == 0:
			*switches[name] = true
		case lists[name] != nil || single[name] != nil:
			return options{}, fmt.Errorf("%s needs a file", name)
		default:
			return options{}, fmt.Errorf("unexpected argument %q", name)
		}
		args = args[end:]
	}
	return o, nil
}
