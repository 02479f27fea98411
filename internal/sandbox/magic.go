package sandbox

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// maxSlow is the longest that /slow/ waits; maxHuge the largest that /huge/ makes, in MiB.
const (
	maxSlow = 10 * time.Minute
	maxHuge = 32
)

// magicParts splits a path such as /fail/NOT_FOUND into its word and its value.
func magicParts(path string) (string, string) {
	word, value, _ := strings.Cut(strings.Trim(path, "/"), "/")
	return word, value
}

// slowness is how long a path such as /slow/5s makes the caller wait.
func slowness(path string) time.Duration {
	word, value := magicParts(path)
	if word != "slow" {
		return 0
	}
	wait, err := time.ParseDuration(value)
	if err != nil {
		return time.Second
	}
	return max(0, min(wait, maxSlow))
}

// hugeness is the number of bytes that a path such as /huge/5mb asks for, or 0.
func hugeness(path string) int {
	word, value := magicParts(path)
	if word != "huge" {
		return 0
	}
	digits := strings.TrimRight(strings.ToLower(value), "kmb")
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 {
		return 1 << 20
	}
	if strings.HasSuffix(strings.ToLower(value), "kb") {
		return min(n, maxHuge<<10) << 10
	}
	return min(n, maxHuge) << 20
}

// isFailRetryable says that the URL is made to fail at first.
func isFailRetryable(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !isMade(u.Hostname()) {
		return false
	}
	word, _ := magicParts(u.Path)
	return word == "fail-retryable"
}

// isSteady says that the URL is made to be good whatever the faults are: a first try that shows that all else works.
func isSteady(text string) bool {
	u, err := url.Parse(text)
	if err != nil || !isMade(u.Hostname()) {
		return false
	}
	word, _ := magicParts(u.Path)
	return word == "steady"
}

// magicOutcome is how a made URL ends: /fail/CODE fails for good with that code; /fail-retryable/N fails the first N
// times (once without N) that an account submits it; everything else is good.
func magicOutcome(u *url.URL, attempt int) outcome {
	word, value := magicParts(u.Path)
	switch word {
	case "fail":
		if value == "" {
			value = "EXTRACTION_FAILED"
		}
		return outcome{code: strings.ToUpper(value), message: "This page is made to fail.", httpStatus: 404}
	case "fail-retryable":
		times, err := strconv.Atoi(value)
		if err != nil {
			times = 1
		}
		if attempt <= times {
			return outcome{
				code: "TIMEOUT", message: "This page is made to fail at first.", retryable: true, httpStatus: 504,
			}
		}
	}
	return outcome{httpStatus: 200, finalURL: finalMade(u)}
}

// finalMade is the URL as a browser would show it: with a slash when the path is empty, without fragment.
func finalMade(u *url.URL) string {
	final := *u
	final.Fragment, final.RawFragment = "", ""
	if final.Path == "" {
		final.Path = "/"
	}
	return final.String()
}
