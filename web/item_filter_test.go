package web

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rollcall/store"
)

func TestAnItemFilterComesBackFromItsAddress(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("far", 9*3600)
	want := store.ItemFilter{
		Batch: 7, State: store.ItemStored, Net: store.NetPoll, HTTPStatus: 404, Code: "NOT_FOUND", Host: "shop.example.com",
		URLPart: "a b/%?", MinBytes: 1, MaxBytes: 20_000_000, MinMS: 5, MaxMS: 90_000,
		From: time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
		Mark: "empty", Standing: store.FailureWaiting,
	}
	got, err := itemFilterOf(itemFilterValues(want), zone)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the filter that came back differs (-want +got):\n%s", diff)
	}
	for name := range itemFilterValues(want) {
		if !strings.Contains(" "+strings.Join(itemFilterNames(), " ")+" ", " "+name+" ") {
			t.Errorf("the field %q is not among the filter's names", name)
		}
	}
}

func TestAnItemFilterReadsWhatPeopleType(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]store.ItemFilter{
		"http=4XX":                         {HTTPClass: 4},
		"min_bytes=1.5+kB&max_bytes=2mb":   {MinBytes: 1500, MaxBytes: 2_000_000},
		"min_ms=800&max_ms=2+min":          {MinMS: 800, MaxMS: 120_000},
		"host=https://Shop.Example.com:8/": {Host: "shop.example.com"},
		"host=http://[2001:DB8::1]:80/x":   {Host: "[2001:db8::1]"},
	} {
		values, _ := url.ParseQuery(query)
		got, err := itemFilterOf(values, time.UTC)
		if err != nil {
			t.Errorf("%s: %v", query, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestAnItemFilterNamesTheFieldsThatAreWrong(t *testing.T) {
	t.Parallel()
	for query, field := range map[string]string{
		"state=lost": "state", "net=carrier": "net", "http=40": "http", "http=0xx": "http", "min_bytes=-1": "min_bytes",
		"max_ms=soon": "max_ms", "max_bytes=1+parsec": "max_bytes", "min_ms=NaN": "min_ms", "max_bytes=1e99": "max_bytes",
		"min_ms=2s&max_ms=1s": "max_ms", "url=a%E2%80%AEb": "url", "batch=0": "batch", "standing=gone": "standing", "since=never": "since",
	} {
		values, _ := url.ParseQuery(query)
		_, err := itemFilterOf(values, time.UTC)
		if mistakes := mistakesOf(t.Context(), err); mistakes[field] == "" || len(mistakes) != 1 {
			t.Errorf("%s: mistakes %v, want one of %s", query, mistakes, field)
		}
	}
}
