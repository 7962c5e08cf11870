package main

import (
	"fmt"
	"strings"
)

// Usage is what a person types.
const Usage = `  ./dev bots [--bots FILE…] [--humans FILE…] [--headers FILE…] [--log FILE] [--json] [--rows]
                                                              the bot detector's recall and false positives
`

// parseArgs reads arguments. It is no flag set because a flag takes all the files up to the next one.
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
			return options{}, fmt.Errorf("what is %q?", name)
		}
		args = args[end:]
	}
	return o, nil
}
