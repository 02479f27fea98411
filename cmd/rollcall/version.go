package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker (-X main.version=...); empty in a plain go build.
var version string

// release is what Rollcall says of itself.
type release struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
}

// thisRelease tells version and commit: from the linker, else from what go build recorded.
func thisRelease() release {
	r := release{Version: version, Commit: "unknown", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = new(debug.BuildInfo)
	}
	dirty := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if dirty {
		r.Commit += "-dirty"
	}
	if r.Version == "" {
		r.Version = "devel"
		if v := info.Main.Version; v != "" && v != "(devel)" {
			r.Version = v
		}
	}
	return r
}

// versionCmd prints the version.
type versionCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Run prints the version as a line or as JSON.
func (c *versionCmd) Run(a *app) error {
	r := thisRelease()
	if c.JSON {
		return json.NewEncoder(a.out).Encode(r)
	}
	_, err := fmt.Fprintf(a.out, "rollcall %s (commit %s, %s)\n", r.Version, r.Commit, r.Go)
	return err
}
