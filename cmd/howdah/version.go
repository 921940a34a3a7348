package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"howdah/internal/cli"
)

// versionInfo is what `howdah version` says.
type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"` // of the source
	Modified bool   `json:"modified"`           // the source had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version of this program", Args: cli.Args(cobra.NoArgs),
		Example: "  howdah version -o json",
		RunE: func(*cobra.Command, []string) error {
			v := readVersion()
			return o.Print(v, func() error {
				o.Say("howdah %s (%s, %s)", v.Version, v.Go, v.Platform)
				return nil
			})
		},
	}
}

func readVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
