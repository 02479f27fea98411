package web

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"rollcall/static"
	"rollcall/store"
)

// access is who may call a route; each includes the ones after it.
type access int

const (
	// anyone needs no session.
	anyone access = iota
	// setUp is anyone, but only while nobody has an account.
	setUp
	// analysts is everybody who is signed in.
	analysts
	operators
	admins
)

// allows reports whether a signed-in person of that role may call.
func (a access) allows(role store.Role) bool {
	switch a {
	case anyone, setUp:
		return true
	case analysts:
		return role == store.RoleAnalyst || role == store.RoleOperator || role == store.RoleAdmin
	case operators:
		return role == store.RoleOperator || role == store.RoleAdmin
	case admins:
		return role == store.RoleAdmin
	}
	return false
}

// The addresses that other code needs to know.
const (
	signInPath     = "/sign-in"
	setUpPath      = "/setup"
	newBatchPath   = "/batches/new"
	batchesPath    = "/batches"
	newCrawlPath   = "/crawls/new"
	crawlsPath     = "/crawls"
	tryPath        = "/try"
	preflightsPath = "/preflights"
	webhookPath    = "/webhooks/geonode/:endpoint"
	webhookPrefix  = "/webhooks/geonode/"
)

// formLimit bounds the body of an ordinary form; uploadLimit of a new batch,
// pasteLimit of one that brings no file.
const (
	formLimit   = 256 << 10
	uploadLimit = maxUpload + maxAtOnce + 1<<20
	pasteLimit  = maxAtOnce + 1<<20
)

// A route is one line of the table. GET routes answer HEAD as well.
type route struct {
	method string
	path   string
	who    access
	handle echo.HandlerFunc
	// limit bounds the request's body; zero means formLimit.
	limit int64
	// stream marks an endless answer: it takes no HEAD.
	stream bool
	// long marks an answer that takes as long as it is large, such as an export.
	long bool
}

// endless reports an answer that isn't bounded in time; it ends when the
// session does.
func (r route) endless() bool { return r.stream || r.long }

// routes is every address of Rollcall, in the order of the menu.
func (s *Server) routes() []route {
	const get, post = http.MethodGet, http.MethodPost
	return []route{
		{method: get, path: "/", who: analysts, handle: s.overview},
		{method: get, path: "/live", who: analysts, handle: s.overviewLive, stream: true},

		{method: get, path: batchesPath, who: analysts, handle: s.batches},
		{method: post, path: batchesPath, who: analysts, handle: s.submitBatch, limit: uploadLimit},
		{method: get, path: newBatchPath, who: analysts, handle: s.newBatch},
		{method: post, path: preflightsPath, who: analysts, handle: s.makePreflight, limit: uploadLimit},
		{method: get, path: "/preflights/:id", who: analysts, handle: s.preflight},
		{method: post, path: "/preflights/:id/choices", who: analysts, handle: s.rereadPreflight},
		{method: post, path: "/preflights/:id/submit", who: analysts, handle: s.submitPreflight},
		{method: get, path: "/preflights/:id/rejected.csv", who: analysts, handle: s.preflightRejected, long: true},
		{method: get, path: "/batches/:id", who: analysts, handle: s.batch},
		{method: get, path: "/batches/:id/items", who: analysts, handle: s.batch},
		{method: get, path: "/batches/:id/rejected.csv", who: analysts, handle: s.batchRejected, long: true},
		{method: get, path: "/batches/:id/items/rows", who: analysts, handle: s.itemRowsLive},
		{method: get, path: "/batches/:id/stuck", who: analysts, handle: s.stuck},
		{method: post, path: "/batches/:id/ask", who: analysts, handle: s.askVendor},
		{method: get, path: "/batches/:id/live", who: analysts, handle: s.batchLive, stream: true},
		{method: get, path: "/batches/:id/cancel", who: analysts, handle: s.planCancelBatch},
		{method: post, path: "/batches/:id/cancel", who: analysts, handle: s.cancelBatch},
		{method: get, path: "/batches/:id/rerun", who: analysts, handle: s.planRerun},
		{method: post, path: "/batches/:id/rerun", who: analysts, handle: s.rerun},
		{method: get, path: newCrawlPath, who: analysts, handle: s.newCrawl},
		{method: post, path: crawlsPath, who: analysts, handle: s.submitCrawl},
		{method: get, path: tryPath, who: analysts, handle: s.try},
		{method: post, path: tryPath, who: analysts, handle: s.tryNow},
		{method: get, path: "/items/:id", who: analysts, handle: s.item},
		{method: get, path: "/items/:id/live", who: analysts, handle: s.itemLive, stream: true},
		{method: get, path: "/jobs/cancel", who: operators, handle: s.planCancelJobs},
		{method: post, path: "/jobs/cancel", who: operators, handle: s.cancelJobs},
		{method: get, path: "/jobs/:id", who: analysts, handle: s.job},
		{method: get, path: "/jobs/:id/live", who: analysts, handle: s.jobLive, stream: true},
		{method: post, path: "/jobs/:id/settle", who: operators, handle: s.settleJob},
		{method: get, path: searchPath, who: analysts, handle: s.search},
		{method: get, path: "/results/:id", who: analysts, handle: s.result},
		{method: get, path: "/results/:id/preview", who: analysts, handle: s.previewResult},
		{method: get, path: "/results/:id/download", who: analysts, handle: s.downloadResult},

		{method: get, path: schedulesPath, who: analysts, handle: s.schedules},
		{method: post, path: schedulesPath, who: analysts, handle: s.addSchedule},
		{method: get, path: schedulesPath + "/new", who: analysts, handle: s.newSchedule},
		{method: get, path: schedulesPath + "/next", who: analysts, handle: s.nextSchedule},
		{method: get, path: schedulesPath + "/:id", who: analysts, handle: s.schedule},
		{method: get, path: schedulesPath + "/:id/change", who: analysts, handle: s.changeScheduleForm},
		{method: post, path: schedulesPath + "/:id/change", who: analysts, handle: s.changeSchedule},
		{method: post, path: schedulesPath + "/:id/pause", who: analysts, handle: s.pauseSchedule},
		{method: post, path: schedulesPath + "/:id/resume", who: analysts, handle: s.resumeSchedule},
		{method: get, path: schedulesPath + "/:id/run", who: analysts, handle: s.planRunSchedule},
		{method: post, path: schedulesPath + "/:id/run", who: analysts, handle: s.runSchedule},
		{method: get, path: schedulesPath + "/:id/remove", who: analysts, handle: s.planRemoveSchedule},
		{method: post, path: schedulesPath + "/:id/remove", who: analysts, handle: s.removeSchedule},

		{method: get, path: "/batches/:id/export", who: analysts, handle: s.exportBatch, long: true},
		{method: get, path: compareResultsPath, who: analysts, handle: s.compareResults},
		{method: get, path: compareBatchesPath, who: analysts, handle: s.compareBatches},
		{method: post, path: compareBatchesPath, who: analysts, handle: s.askComparison},
		{method: get, path: compareBatchesPath + "/live", who: analysts, handle: s.compareLive, stream: true},
		{method: get, path: exportsPath, who: analysts, handle: s.exports},
		{method: post, path: exportsPath, who: analysts, handle: s.makeExport},
		{method: get, path: exportsPath + "/new", who: analysts, handle: s.newExport},
		{method: get, path: exportsPath + "/live", who: analysts, handle: s.exportsLive, stream: true},
		{method: get, path: exportsPath + "/items", who: analysts, handle: s.exportItems, long: true},
		{method: get, path: exportsPath + "/:id", who: analysts, handle: s.export},
		{method: get, path: exportsPath + "/:id/live", who: analysts, handle: s.exportLive, stream: true},
		{method: get, path: exportsPath + "/:id/manifest.json", who: analysts, handle: s.exportManifest},
		{method: get, path: exportsPath + "/:id/download", who: analysts, handle: s.downloadExport, long: true},
		{method: post, path: exportsPath + "/:id/cancel", who: analysts, handle: s.cancelExport},
		{method: post, path: exportsPath + "/:id/delete", who: analysts, handle: s.deleteExport},

		{method: get, path: "/failures", who: analysts, handle: s.failures},
		{method: get, path: "/failures/resolve", who: analysts, handle: s.planResolve},
		{method: post, path: "/failures/resolve", who: analysts, handle: s.resolve},
		{method: post, path: "/failures/unresolve", who: analysts, handle: s.unresolve},
		{method: get, path: "/resubmit", who: analysts, handle: s.planResubmit},
		{method: post, path: "/resubmit", who: analysts, handle: s.resubmit},
		{method: get, path: receivedPath, who: analysts, handle: s.deliveries},
		{method: get, path: logPath, who: analysts, handle: s.deliveryLog},
		{method: post, path: logPath + "/read", who: operators, handle: s.readLogNow},
		{method: get, path: "/deliveries/:id", who: analysts, handle: s.delivery},
		{method: get, path: "/deliveries/:id/body", who: analysts, handle: s.deliveryBody},
		{method: post, path: "/deliveries/:id/verify", who: operators, handle: s.verifyDelivery},
		{method: get, path: replaysPath, who: operators, handle: s.replays},
		{method: post, path: replaysPath, who: operators, handle: s.planReplay},
		{method: get, path: "/replays/new", who: operators, handle: s.newReplay},
		{method: get, path: "/replays/:id", who: operators, handle: s.replay},
		{method: get, path: "/replays/:id/live", who: operators, handle: s.replayLive, stream: true},
		{method: post, path: "/replays/:id/run", who: operators, handle: s.runReplay},
		{method: post, path: "/replays/:id/pause", who: operators, handle: s.pauseReplay},
		{method: post, path: "/replays/:id/resume", who: operators, handle: s.resumeReplay},
		{method: post, path: "/replays/:id/cancel", who: operators, handle: s.cancelReplay},
		{method: get, path: "/replays/:id/differences", who: operators, handle: s.differences},
		{method: get, path: "/replays/:id/differences/:item", who: operators, handle: s.difference},
		{method: post, path: "/replays/:id/differences/:item/replace", who: operators, handle: s.replaceResult},
		{method: get, path: "/reconcile", who: analysts, handle: s.reconcile},
		{method: get, path: "/reconcile/live", who: analysts, handle: s.reconcileLive, stream: true},
		{method: post, path: "/reconcile", who: operators, handle: s.reconcileNow},
		{method: post, path: "/dispatch/resume", who: operators, handle: s.resumeDispatch},
		{method: get, path: webhooksPath, who: admins, handle: s.webhooks},
		{method: post, path: "/webhooks/register", who: admins, handle: s.registerWebhooks},
		{method: get, path: "/webhooks/adopt", who: admins, handle: s.adoptPage},
		{method: post, path: "/webhooks/adopt", who: admins, handle: s.adoptWebhook},
		{method: get, path: checkPath, who: admins, handle: s.checkPage},
		{method: post, path: checkPath, who: admins, handle: s.checkRequest, limit: checkLimit},
		{method: post, path: "/webhooks/check/form", who: admins, handle: s.setCheckedForm},
		{method: get, path: "/webhooks/:id", who: admins, handle: s.webhookOne},
		{method: post, path: "/webhooks/:id/pause", who: admins, handle: s.pauseWebhook},
		{method: post, path: "/webhooks/:id/resume", who: admins, handle: s.resumeWebhook},
		{method: post, path: "/webhooks/:id/repair", who: admins, handle: s.repairWebhook},
		{method: post, path: "/webhooks/:id/remove", who: admins, handle: s.removeWebhook},
		{method: post, path: "/webhooks/:id/describe", who: admins, handle: s.describeWebhook},
		{method: post, path: "/webhooks/:id/form", who: admins, handle: s.formWebhook},
		{method: post, path: "/webhooks/:id/send", who: admins, handle: s.sendOne},
		{method: get, path: "/webhooks/:id/sent/:batch", who: admins, handle: s.sentOne},
		{method: get, path: "/webhooks/:id/sent/:batch/live", who: admins, handle: s.sentLive, stream: true},
		{method: get, path: "/webhooks/:id/rotation", who: admins, handle: s.rotation},
		{method: get, path: "/webhooks/:id/rotation/live", who: admins, handle: s.rotationLive, stream: true},
		{method: post, path: "/webhooks/:id/rotate", who: admins, handle: s.rotate},
		{method: get, path: "/users", who: admins, handle: s.users},
		{method: post, path: "/users/invite", who: admins, handle: s.inviteUser},
		{method: get, path: "/users/invites/:id", who: admins, handle: s.showLink},
		{method: post, path: "/users/invites/:id/revoke", who: admins, handle: s.revokeInvite},
		{method: get, path: "/users/:id", who: admins, handle: s.user},
		{method: post, path: "/users/:id/role", who: admins, handle: s.setRole},
		{method: post, path: "/users/:id/disable", who: admins, handle: s.disableUser},
		{method: post, path: "/users/:id/enable", who: admins, handle: s.enableUser},
		{method: post, path: "/users/:id/reset", who: admins, handle: s.resetPassword},
		{method: post, path: "/users/:id/sign-out", who: admins, handle: s.signOutUser},
		{method: get, path: auditPath, who: admins, handle: s.audit},
		{method: get, path: auditPath + ".csv", who: admins, handle: s.auditCSV, long: true},
		{method: get, path: auditPath + ".jsonl", who: admins, handle: s.auditJSONL, long: true},
		{method: get, path: accountPath, who: analysts, handle: s.account},
		{method: post, path: accountPath + "/settings", who: analysts, handle: s.saveSettings},
		{method: post, path: accountPath + "/password", who: analysts, handle: s.changePassword},
		{method: post, path: accountPath + "/sessions/:id/end", who: analysts, handle: s.endSession},
		{method: post, path: accountPath + "/sessions/end", who: analysts, handle: s.endOtherSessions},

		{method: get, path: signInPath, who: anyone, handle: s.signInPage},
		{method: post, path: signInPath, who: anyone, handle: s.signIn, limit: carryLimit},
		{method: post, path: "/sign-out", who: analysts, handle: s.signOut},
		{method: get, path: setUpPath, who: setUp, handle: s.setUpPage},
		{method: post, path: setUpPath, who: setUp, handle: s.setUp},
		{method: get, path: invitePrefix + ":token", who: anyone, handle: s.invite},
		{method: post, path: invitePrefix + ":token", who: anyone, handle: s.useInvite},

		// From the vendor: no session, no form; bounded by Config.MaxBody.
		{method: post, path: webhookPath, who: anyone, handle: s.receive, limit: -1},
		// From whatever watches over the process.
		{method: get, path: "/healthz", who: anyone, handle: s.healthz},
		{method: get, path: "/readyz", who: anyone, handle: s.readyz},
		{method: get, path: static.Prefix + "*", who: anyone, handle: echo.WrapHandler(static.Handler())},
	}
}

// mount puts a route behind its guards: who may call, how much they may send,
// and that the form came from a page of this session.
func (s *Server) mount(e *echo.Echo, r route) {
	handle := s.guarded(r)
	e.Add(r.method, r.path, handle)
	if r.method == http.MethodGet && !r.stream {
		e.HEAD(r.path, handle)
	}
	if r.path == webhookPath {
		e.RouteNotFound(r.path, s.refuseMethod)
	}
}

// sessionless reports a request that no person's session has a part in.
func sessionless(path string) bool {
	switch path {
	case webhookPath, "/healthz", "/readyz", static.Prefix + "*":
		return true
	}
	return false
}
