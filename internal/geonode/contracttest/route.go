package contracttest

import (
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
)

// route is one path of the contract, cut into segments.
type route struct {
	path     string
	segments []string
	item     *openapi3.PathItem
}

// routesOf lists the paths, those with fewer parameters first, so that the literal
// /jobs is found before {job_id}.
func routesOf(doc *openapi3.T) []route {
	var routes []route
	for path, item := range doc.Paths.Map() {
		routes = append(routes, route{path: path, segments: strings.Split(path, "/"), item: item})
	}
	slices.SortFunc(routes, func(a, b route) int {
		if d := strings.Count(a.path, "{") - strings.Count(b.path, "{"); d != 0 {
			return d
		}
		return strings.Compare(a.path, b.path)
	})
	return routes
}

// find gives the operation of a call with its path parameters; nil when the contract
// has no such path or method.
func (c *contract) find(method string, u *url.URL) (*routers.Route, map[string]string) {
	segments := strings.Split(u.EscapedPath(), "/")
	for _, r := range c.routes {
		params, ok := r.match(segments)
		if !ok {
			continue
		}
		operation := r.item.GetOperation(method)
		if operation == nil {
			return nil, nil
		}
		return &routers.Route{
			Spec: c.doc, Path: r.path, PathItem: r.item, Method: method, Operation: operation,
		}, params
	}
	return nil, nil
}

// match compares segment by segment; an empty segment is no parameter.
func (r route) match(segments []string) (map[string]string, bool) {
	if len(segments) != len(r.segments) {
		return nil, false
	}
	params := map[string]string{}
	for i, want := range r.segments {
		got, err := url.PathUnescape(segments[i])
		if err != nil {
			return nil, false
		}
		name, isParam := strings.CutPrefix(want, "{")
		if isParam && got != "" {
			params[strings.TrimSuffix(name, "}")] = got
		} else if got != want {
			return nil, false
		}
	}
	return params, true
}
