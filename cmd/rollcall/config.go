package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// Config holds every setting of Rollcall. Each field is a flag, an environment variable and a row of the README;
// the three names follow from each other (ROLLCALL_POLL_FIRST, --poll-first, PollFirst) unless the tag `name` says
// otherwise, as for the role, which is also a word of users. Tags: `secret` marks values
// that may also come from the file named by ..._FILE and are never shown; `oneof` lists the words a field accepts.
// Config is filled by parse, checked by Check and not changed afterwards.
type Config struct {
	DatabaseURL         string   `group:"Database" env:"DATABASE_URL" secret:"" help:"Postgres to use, as a postgres:// URL. Empty: a private Postgres is started in the data folder."`
	DatabaseConnections int      `group:"Database" env:"ROLLCALL_DATABASE_CONNECTIONS" default:"20" help:"Connections one process opens at most; 6 or more."`
	DataDir             dataPath `group:"Database" env:"ROLLCALL_DATA_DIR" help:"Folder for the private Postgres and the secret key. Empty: /var/lib/rollcall for root, else $$XDG_DATA_HOME/rollcall or ~/.local/share/rollcall."`
	PostgresBin         string   `group:"Database" env:"ROLLCALL_POSTGRES_BIN" help:"Folder of the postgres and initdb programs for the private Postgres. Empty: looked for in the usual places."`

	Listen         string        `group:"Server" env:"ROLLCALL_LISTEN" default:"127.0.0.1:8080" help:"Address and port to serve on."`
	PublicURL      string        `group:"Server" env:"ROLLCALL_PUBLIC_URL" help:"Where browsers and the vendor reach Rollcall, such as https://rollcall.example.org. Webhooks need it."`
	Role           string        `name:"process-role" group:"Server" env:"ROLLCALL_ROLE" default:"all" oneof:"all|web|worker" help:"What this process does."`
	SecretKey      string        `group:"Server" env:"ROLLCALL_SECRET_KEY" secret:"" help:"32 bytes as base64 or hex that encrypt secrets at rest. Empty: made once and kept in the data folder. Processes that share a database must share it."`
	TrustedProxies prefixes      `group:"Server" env:"ROLLCALL_TRUSTED_PROXIES" help:"Networks whose X-Forwarded-For is believed, comma separated, such as 10.0.0.0/8. Empty: none."`
	SessionIdle    time.Duration `group:"Server" env:"ROLLCALL_SESSION_IDLE" default:"12h" help:"A session ends when it isn't used for this long."`
	SessionMax     time.Duration `group:"Server" env:"ROLLCALL_SESSION_MAX" default:"168h" help:"A session ends this long after sign-in, used or not."`
	ShutdownGrace  time.Duration `group:"Server" env:"ROLLCALL_SHUTDOWN_GRACE" default:"25s" help:"How long work in flight may take to finish after SIGTERM."`
	LogLevel       string        `group:"Server" env:"ROLLCALL_LOG_LEVEL" default:"info" oneof:"debug|info|warn|error" help:"The least level logged."`
	LogFormat      string        `group:"Server" env:"ROLLCALL_LOG_FORMAT" default:"text" oneof:"text|json" help:"The form of log lines."`

	GeonodeScraperAPIKey string        `group:"Vendor" env:"GEONODE_SCRAPER_API_KEY" secret:"" help:"The vendor's API key."`
	ScraperAPIBaseURL    string        `group:"Vendor" env:"SCRAPER_API_BASE_URL" default:"https://scraper.geonode.io" help:"The vendor's API. Plain http is accepted only to loopback."`
	VendorRPS            float64       `name:"vendor-rps" group:"Vendor" env:"ROLLCALL_VENDOR_RPS" default:"10" help:"Jobs submitted to the vendor per second and process."`
	ReplayRPS            float64       `name:"replay-rps" group:"Vendor" env:"ROLLCALL_REPLAY_RPS" default:"10" help:"Calls per second that all replays together ask for, behind live work."`
	VendorConcurrency    int           `group:"Vendor" env:"ROLLCALL_VENDOR_CONCURRENCY" default:"8" help:"Calls to the vendor at the same time and process, for submitting and for reading each."`
	VendorTimeout        time.Duration `group:"Vendor" env:"ROLLCALL_VENDOR_TIMEOUT" default:"15s" help:"The longest one call to the vendor may take. Below 20s, the limit of one task."`
	ClaimLease           time.Duration `group:"Vendor" env:"ROLLCALL_CLAIM_LEASE" default:"1m" help:"How long a submit call owns its job; must exceed the vendor timeout."`
	URLsPerJob           int           `name:"urls-per-job" group:"Vendor" env:"ROLLCALL_URLS_PER_JOB" default:"1000" help:"URLs sent in one batch job; a job that the plan refuses is split in halves."`

	Mode               string        `group:"Nets" env:"ROLLCALL_MODE" default:"auto" oneof:"auto|webhook|poll" help:"Which net jobs are expected in: webhook polls only what is late, poll needs no public address, auto follows the health of the webhooks."`
	WebhookFallback    time.Duration `group:"Nets" env:"ROLLCALL_WEBHOOK_FALLBACK" default:"1m" help:"With healthy webhooks, the age at which a job is first polled all the same."`
	PollFirst          time.Duration `group:"Nets" env:"ROLLCALL_POLL_FIRST" default:"1s" help:"The first gap between polls of a job; gaps double, with full jitter."`
	PollCap            time.Duration `group:"Nets" env:"ROLLCALL_POLL_CAP" default:"30s" help:"The longest gap between polls of a job."`
	PollMaxWait        time.Duration `group:"Nets" env:"ROLLCALL_POLL_MAX_WAIT" default:"30m" help:"The age at which an open job is flagged overdue; it is still asked for."`
	ReconcileEvery     time.Duration `group:"Nets" env:"ROLLCALL_RECONCILE_EVERY" default:"10m" help:"How often the vendor's lists are compared with ours."`
	ReconcileOlderThan time.Duration `group:"Nets" env:"ROLLCALL_RECONCILE_OLDER_THAN" default:"2m" help:"The reconciler wakes finished jobs that aren't settled at this age."`
	ReconcileWindow    time.Duration `group:"Nets" env:"ROLLCALL_RECONCILE_WINDOW" default:"48h" help:"How far back the reconciler reads the vendor's lists; older open jobs are asked for one by one."`
	GiveUpAfter        time.Duration `group:"Nets" env:"ROLLCALL_GIVE_UP_AFTER" default:"72h" help:"The age at which an open job is given up and its items fail; a late result is still stored."`

	MaxBody     size          `group:"Webhooks" env:"ROLLCALL_MAX_BODY" default:"32MiB" help:"The largest webhook body accepted."`
	MaxInFlight size          `group:"Webhooks" env:"ROLLCALL_MAX_IN_FLIGHT" default:"128MiB" help:"Webhook bodies held in memory at the same time; more are answered 503."`
	SecretGrace time.Duration `group:"Webhooks" env:"ROLLCALL_SECRET_GRACE" default:"24h" help:"How long an old webhook secret is still accepted after a rotation."`

	QuarantineRows  int  `group:"Webhooks" env:"ROLLCALL_QUARANTINE_ROWS" default:"1000" help:"Refused deliveries kept for each webhook, and as many again while its secret is being changed."`
	QuarantineBytes size `group:"Webhooks" env:"ROLLCALL_QUARANTINE_BYTES" default:"50MB" help:"What their bodies may take up for each webhook, and as much again while its secret is being changed."`

	KeepBodies     time.Duration `group:"Growth" env:"ROLLCALL_KEEP_BODIES" default:"720h" help:"How long headers and bodies of deliveries are kept, once their job has settled. 0s in this group: for ever."`
	KeepDeliveries time.Duration `group:"Growth" env:"ROLLCALL_KEEP_DELIVERIES" default:"2160h" help:"How long deliveries are kept, without headers and bodies in the end, once their job has settled."`
	KeepLog        time.Duration `group:"Growth" env:"ROLLCALL_KEEP_LOG" default:"2160h" help:"How long what is mirrored of the vendor's delivery log is kept, once the job has settled."`
	KeepBatches    time.Duration `group:"Growth" env:"ROLLCALL_KEEP_BATCHES" default:"0s" help:"How long a batch keeps its items, results and jobs after its end; of one that is older only its counts stay. For ever by default: results are what was paid for, and only you know when nobody needs them."`
	KeepEvents     time.Duration `group:"Growth" env:"ROLLCALL_KEEP_EVENTS" default:"2160h" help:"How long the ids of foreign jobs are kept, and those of removed ones after they were removed: what is heard of one late is then no news."`
	KeepRuns       time.Duration `group:"Growth" env:"ROLLCALL_KEEP_RUNS" default:"2160h" help:"How long it is kept what Rollcall noted of its own work: reconcile runs, replays that ended, runs of schedules."`
	KeepStats      time.Duration `group:"Growth" env:"ROLLCALL_KEEP_STATS" default:"17520h" help:"How long the hours of the statistics are kept. Two years by default, so that a month can be held against that of the year before."`
	KeepAudit      time.Duration `group:"Growth" env:"ROLLCALL_KEEP_AUDIT" default:"0s" help:"How long the audit log is kept. For ever by default: it grows only with what people do."`
	DiskLimit      size          `group:"Growth" env:"ROLLCALL_DISK_LIMIT" default:"0" help:"What the database may take up. The overview then says in how many days it will. 0: not known."`

	KeepExports time.Duration `group:"Exports" env:"ROLLCALL_KEEP_EXPORTS" default:"72h" help:"How long files stay that were made in the background."`
	ExportSpace size          `group:"Exports" env:"ROLLCALL_EXPORT_SPACE" default:"2GB" help:"What all files that are kept may take up in the database together."`

	SignatureHeader   string        `group:"Signature" env:"ROLLCALL_SIGNATURE_HEADER" default:"X-Webhook-Signature" help:"Header that holds the signature."`
	DeliveryHeader    string        `group:"Signature" env:"ROLLCALL_DELIVERY_HEADER" default:"X-Webhook-Delivery-Id" help:"Header that holds the delivery id."`
	EventHeader       string        `group:"Signature" env:"ROLLCALL_EVENT_HEADER" default:"X-Webhook-Event" help:"Header that holds the event type."`
	SignatureEncoding string        `group:"Signature" env:"ROLLCALL_SIGNATURE_ENCODING" default:"auto" oneof:"auto|hex|base64|base64url" help:"How the signature is written. auto tries every form; the first verified delivery pins it for that webhook."`
	SignaturePrefix   string        `group:"Signature" env:"ROLLCALL_SIGNATURE_PREFIX" default:"auto" oneof:"auto|none|sha256=|v1=|v1," help:"What stands before the signature."`
	SignatureSigned   string        `group:"Signature" env:"ROLLCALL_SIGNATURE_SIGNED" default:"auto" oneof:"auto|body|delivery_id.body|timestamp.body" help:"The bytes that are signed."`
	SignatureKey      string        `group:"Signature" env:"ROLLCALL_SIGNATURE_KEY" default:"auto" oneof:"auto|whole|after_whsec|base64_after_whsec" help:"Which bytes of the secret are the key: all, those after whsec_, or those decoded from base64."`
	SignatureMaxAge   time.Duration `group:"Signature" env:"ROLLCALL_SIGNATURE_MAX_AGE" default:"0s" help:"Deliveries whose timestamp is older are refused. 0s: off, since retries may be hours late."`

	FieldJobID      fieldPaths `group:"Fields" env:"ROLLCALL_FIELD_JOB_ID" default:"data.job_id,job_id" help:"Where a delivery's body holds the job id: dotted paths, the first that is there wins."`
	FieldEvent      fieldPaths `group:"Fields" env:"ROLLCALL_FIELD_EVENT" default:"event,event_type" help:"Where a delivery's body holds the event type."`
	FieldDeliveryID fieldPaths `group:"Fields" env:"ROLLCALL_FIELD_DELIVERY_ID" default:"delivery_id,id" help:"Where a delivery's body holds the delivery id."`
	FieldQuotaLeft  fieldPaths `group:"Fields" env:"ROLLCALL_FIELD_QUOTA_LEFT" default:"tokens.remaining,requests.remaining,quota.remaining,credits.remaining,tokens_remaining,requests_remaining" help:"Where the vendor's report at /v1/usage says how many requests are left."`
	FieldQuotaLimit fieldPaths `group:"Fields" env:"ROLLCALL_FIELD_QUOTA_LIMIT" default:"tokens.limit,requests.limit,quota.limit,credits.limit,tokens_limit,requests_limit" help:"Where it says how many there are in all."`
	FieldQuotaUsed  fieldPaths `group:"Fields" env:"ROLLCALL_FIELD_QUOTA_USED" default:"tokens.used,requests.used,quota.used,credits.used,tokens_used,requests_used" help:"Where it says how many were used."`

	problems []error
}

// lookup answers for one environment variable, as os.LookupEnv does.
type lookup func(name string) (string, bool)

// processEnv is the environment of this process. Nothing else reads it.
func processEnv(name string) (string, bool) { return os.LookupEnv(name) }

// dataPath is a folder; it is made absolute when read.
type dataPath string

// defaultDataDir is the data folder of a process with this user id and environment, or "" when no home is known.
func defaultDataDir(uid int, env lookup) dataPath {
	if uid == 0 {
		return "/var/lib/rollcall"
	}
	if dir, ok := env("XDG_DATA_HOME"); ok && filepath.IsAbs(dir) {
		return dataPath(filepath.Join(dir, "rollcall"))
	}
	if home, ok := env("HOME"); ok && filepath.IsAbs(home) {
		return dataPath(filepath.Join(home, ".local", "share", "rollcall"))
	}
	return ""
}

// UnmarshalText reads a folder relative to the working directory.
func (p *dataPath) UnmarshalText(text []byte) error {
	abs, err := filepath.Abs(string(text))
	*p = dataPath(abs)
	return err
}

// PostgresDir is where the private Postgres lives.
func (c *Config) PostgresDir() string { return filepath.Join(string(c.DataDir), "postgres") }

// Proxies are the networks whose forwarding headers are believed.
func (c *Config) Proxies() []netip.Prefix { return c.TrustedProxies }
