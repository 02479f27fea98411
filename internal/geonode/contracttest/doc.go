// Package contracttest holds tests against the vendor's contract: it validates the
// HTTP calls of a test, and webhook deliveries, against a copy of openapi.yaml kept in
// testdata. It is a test kit, imported by tests only.
//
// On the client's side wrap the transport with [Transport], on the simulator's side
// the handler with [Handler]; both report a breach as an error of the test. A call
// that breaks the contract on purpose is marked, with [Deliberate] on a context or the
// header [DeliberateHeader] on a request or an answer: it is exempt and counted, and
// [Report] prints the count. The kit takes the header off, so that the other side
// never sees it.
//
// Beyond the letter of openapi.yaml three things hold. An error answer of status 401,
// 404 or 409 may be empty (gaps.md, K7). Every other status that isn't listed falls
// under the default answer, the standard error; a redirect is always a breach. A
// query parameter that the contract doesn't name is a breach too.
package contracttest
