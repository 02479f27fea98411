package main

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// printHelp leaves the settings out, where they would bury the commands and their own flags; rollcall settings lists them.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	for _, flag := range ctx.Model.Flags {
		flag.Hidden = flag.Hidden || len(flag.Envs) > 0
	}
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil {
		return err
	}
	_, err := fmt.Fprintln(ctx.Stdout, "\nSettings are environment variables or flags of every command: rollcall settings lists them.")
	return err
}
