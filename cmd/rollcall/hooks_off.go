//go:build !drill

package main

import "time"

// hooksCompiled tells that a drill can have servers die at named steps.
const hooksCompiled = false

// drillHooks are none: this program was built without them.
func drillHooks(now func() time.Time, _ lookup) (hooks, error) { return hooks{now: now}, nil }
