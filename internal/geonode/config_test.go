package geonode_test

import (
	"strings"
	"testing"
	"time"

	"rollcall/internal/geonode"
)

func TestNew(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit func(*geonode.Config)
		want string // Empty when New must succeed.
	}{
		"OK":             {func(*geonode.Config) {}, ""},
		"Prefix":         {func(c *geonode.Config) { c.BaseURL = "https://a.example:8443/api/" }, ""},
		"Loopback4":      {func(c *geonode.Config) { c.BaseURL = "http://127.0.0.1:8080" }, ""},
		"Loopback6":      {func(c *geonode.Config) { c.BaseURL = "http://[::1]:8080" }, ""},
		"Localhost":      {func(c *geonode.Config) { c.BaseURL = "http://LOCALHOST" }, ""},
		"LoopbackMapped": {func(c *geonode.Config) { c.BaseURL = "http://[::ffff:127.0.0.1]" }, ""},
		"PlainHTTP":      {func(c *geonode.Config) { c.BaseURL = "http://a.example" }, "only for loopback"},
		"NotLoopback":    {func(c *geonode.Config) { c.BaseURL = "http://127.0.0.1.a.example" }, "only for loopback"},
		"NotLocalhost":   {func(c *geonode.Config) { c.BaseURL = "http://notlocalhost" }, "only for loopback"},
		"OtherScheme":    {func(c *geonode.Config) { c.BaseURL = "ftp://a.example" }, "not https"},
		"NoHost":         {func(c *geonode.Config) { c.BaseURL = "https:///x" }, "no host"},
		"Empty":          {func(c *geonode.Config) { c.BaseURL = "" }, "no host"},
		"UserInfo":       {func(c *geonode.Config) { c.BaseURL = "https://u:hidden@a.example" }, "user information"},
		"Query":          {func(c *geonode.Config) { c.BaseURL = "https://a.example/?hidden" }, "query"},
		"Unparsable":     {func(c *geonode.Config) { c.BaseURL = "https://hidden\x7f" }, "not a url"},
		"NoKey":          {func(c *geonode.Config) { c.APIKey = "" }, "api key: empty"},
		"KeyWithNewline": {func(c *geonode.Config) { c.APIKey = "hidden\n" }, "api key: holds"},
		"BadKeyHeader":   {func(c *geonode.Config) { c.KeyHeader = "X Key" }, "not a header name"},
		"BadUserAgent":   {func(c *geonode.Config) { c.UserAgent = "a\r\nb" }, "user agent"},
		"NoClock":        {func(c *geonode.Config) { c.Now = nil }, "clock"},
		"NegativeBound":  {func(c *geonode.Config) { c.MaxResponse = -1 }, "largest response"},
		"HugeBound":      {func(c *geonode.Config) { c.MaxResponse = 2 << 30 }, "largest response"},
		"BadTimeout":     {func(c *geonode.Config) { c.Timeouts.List = -time.Second }, "list timeout"},
		"LongTimeout":    {func(c *geonode.Config) { c.Timeouts.Sync = 2 * time.Hour }, "sync timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := geonode.Config{BaseURL: "https://a.example", APIKey: testKey, Now: clock}
			tc.edit(&cfg)
			_, err := geonode.New(cfg)
			switch {
			case (err == nil) != (tc.want == ""):
				t.Errorf("got %v, want %q", err, tc.want)
			case err != nil && !strings.Contains(err.Error(), tc.want):
				t.Errorf("got %q, want one that says %q", err, tc.want)
			case err != nil && strings.Contains(err.Error(), "hidden"):
				t.Errorf("got %q, which shows what it must not", err)
			}
		})
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	t.Parallel()
	_, err := geonode.New(geonode.Config{})
	for _, want := range []string{"base url", "api key", "clock"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want also %q", err, want)
		}
	}
}

func TestHeadersAndPrefix(t *testing.T) {
	t.Parallel()
	v := newVendor(t, says(200, `{}`))
	c, err := geonode.New(geonode.Config{
		BaseURL: v.URL + "/a%2Fb/", APIKey: testKey, KeyHeader: "Authorization-Key", UserAgent: "test/2",
		Now: clock, Transport: v.Client().Transport,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Usage(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := v.one(t)
	if got.URI != "/a%2Fb/v1/usage" || got.Header.Get("Authorization-Key") != testKey || got.Header.Get("User-Agent") != "test/2" || got.Header.Get("X-Api-Key") != "" {
		t.Errorf("got %s %v", got.URI, got.Header)
	}
}
