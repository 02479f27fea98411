package sandbox

// The wire types below follow the schemas of the vendor's contract by name; null is a nil pointer, map or slice.

// wireProxy is ProxyOptions.
type wireProxy struct {
	Country *string `json:"country"`
	Type    string  `json:"type"`
}

// wireWait is WaitConfig.
type wireWait struct {
	WaitUntil   string  `json:"wait_until"`
	WaitFor     *string `json:"wait_for"`
	WaitTimeout *int    `json:"wait_timeout"`
}

// wireContent is PageContent.
type wireContent struct {
	Markdown *string  `json:"markdown"`
	HTML     *string  `json:"html"`
	Links    []string `json:"links"`
}

// wireExtractMeta is ExtractMetadata.
type wireExtractMeta struct {
	URL            string            `json:"url"`
	RenderJS       bool              `json:"render_js"`
	HTTPStatus     *int              `json:"http_status"`
	DurationMS     *int              `json:"duration_ms"`
	RetryCount     *int              `json:"retry_count"`
	Formats        []string          `json:"formats"`
	Proxy          *wireProxy        `json:"proxy"`
	ProcessingMode string            `json:"processing_mode"`
	Headers        map[string]string `json:"headers"`
	WaitConfig     *wireWait         `json:"wait_config"`
}

// wireExtractError is ExtractionError: the error of a job, and of a sync call whose page could not be extracted.
type wireExtractError struct {
	Code      string            `json:"code"`
	Message   string            `json:"message"`
	Retryable bool              `json:"retryable"`
	Details   map[string]string `json:"details"`
}

// wireExtractSync is ExtractSyncResult.
type wireExtractSync struct {
	Data          wireContent     `json:"data"`
	Metadata      wireExtractMeta `json:"metadata"`
	TokensCharged int             `json:"tokens_charged"`
}

// wireExtractAccepted is ExtractAccepted.
type wireExtractAccepted struct {
	JobID           string `json:"job_id"`
	Status          string `json:"status"`
	StatusURL       string `json:"status_url"`
	EstimatedTokens int    `json:"estimated_tokens"`
}

// wireExtractJob is ExtractJob.
type wireExtractJob struct {
	JobID         string            `json:"job_id"`
	Status        string            `json:"status"`
	CreatedAt     stamp             `json:"created_at"`
	CompletedAt   *stamp            `json:"completed_at"`
	Data          *wireContent      `json:"data"`
	Metadata      *wireExtractMeta  `json:"metadata"`
	Error         *wireExtractError `json:"error"`
	TokensCharged *int              `json:"tokens_charged"`
}

// wireExtractRow is ExtractJobSummary.
type wireExtractRow struct {
	JobID         string   `json:"job_id"`
	Status        string   `json:"status"`
	URL           string   `json:"url"`
	CreatedAt     stamp    `json:"created_at"`
	ExecutionTime *int     `json:"execution_time"`
	Output        []string `json:"output"`
}

// wireJobs is ExtractJobList, BatchJobList and CrawlJobList.
type wireJobs struct {
	Jobs      []any `json:"jobs"`
	Page      int   `json:"page"`
	PageSize  int   `json:"page_size"`
	PageCount int   `json:"page_count"`
}

// wireItems is WebhookList and WebhookDeliveryList.
type wireItems struct {
	Items     []any `json:"items"`
	Page      int   `json:"page"`
	PageSize  int   `json:"page_size"`
	PageCount int   `json:"page_count"`
}

// wireTokens is TokenSummary.
type wireTokens struct {
	ChargedTotal int `json:"tokens_charged_total"`
	Reserved     int `json:"tokens_reserved"`
}

// wireItemMeta is ItemMetadata.
type wireItemMeta struct {
	HTTPStatus    *int `json:"http_status"`
	DurationMS    *int `json:"duration_ms"`
	RetryCount    *int `json:"retry_count"`
	TokensCharged *int `json:"tokens_charged"`
}

// wireBatchAccepted is BatchAccepted.
type wireBatchAccepted struct {
	JobID        string `json:"job_id"`
	Status       string `json:"status"`
	StatusURL    string `json:"status_url"`
	AcceptedURLs int    `json:"accepted_urls"`
	InvalidURLs  []any  `json:"invalid_urls"`
}

// wireBatchConfig is JobConfig.
type wireBatchConfig struct {
	RenderJS   bool              `json:"render_js"`
	Formats    []string          `json:"formats"`
	Proxy      *wireProxy        `json:"proxy"`
	Headers    map[string]string `json:"headers"`
	WaitConfig *wireWait         `json:"wait_config"`
}

// wireBatchItem is BatchItemResult.
type wireBatchItem struct {
	InputIndex   int           `json:"input_index"`
	URL          string        `json:"url"`
	Status       string        `json:"status"`
	ErrorCode    *string       `json:"error_code"`
	ErrorMessage *string       `json:"error_message"`
	Data         *wireContent  `json:"data"`
	Metadata     *wireItemMeta `json:"metadata"`
}

// wireBatchJob is BatchJob. Results is left out of the summary that callbacks carry.
type wireBatchJob struct {
	JobID         string           `json:"job_id"`
	Status        string           `json:"status"`
	BatchConfig   *wireBatchConfig `json:"batch_config,omitempty"`
	TokenSummary  wireTokens       `json:"token_summary"`
	TotalURLs     int              `json:"total_urls"`
	CompletedURLs int              `json:"completed_urls"`
	FailedURLs    int              `json:"failed_urls"`
	CancelledURLs int              `json:"cancelled_urls"`
	PendingURLs   int              `json:"pending_urls"`
	InvalidURLs   *[]any           `json:"invalid_urls,omitempty"`
	CreatedAt     stamp            `json:"created_at"`
	CompletedAt   *stamp           `json:"completed_at"`
	Results       *[]wireBatchItem `json:"results,omitempty"`
}

// wireBatchCancelled is BatchCancelled.
type wireBatchCancelled struct {
	JobID        string `json:"job_id"`
	Status       string `json:"status"`
	StatusURL    string `json:"status_url"`
	InFlightURLs int    `json:"in_flight_urls"`
}

// wireBatchRow is BatchJobSummary.
type wireBatchRow struct {
	JobID         string           `json:"job_id"`
	Status        string           `json:"status"`
	AcceptedURLs  int              `json:"accepted_urls"`
	CompletedURLs int              `json:"completed_urls"`
	FailedURLs    int              `json:"failed_urls"`
	Config        *wireBatchConfig `json:"config"`
	CreatedAt     stamp            `json:"created_at"`
	CompletedAt   *stamp           `json:"completed_at"`
}

// wireCrawlAccepted is CrawlAccepted.
type wireCrawlAccepted struct {
	JobID          string `json:"job_id"`
	URL            string `json:"url"`
	Status         string `json:"status"`
	StatusURL      string `json:"status_url"`
	EstimatedPages int    `json:"estimated_pages"`
}

// wireCrawlConfig is CrawlConfig.
type wireCrawlConfig struct {
	RenderJS          bool       `json:"render_js"`
	Formats           []string   `json:"formats"`
	SameDomainOnly    bool       `json:"same_domain_only"`
	IncludeSubdomains bool       `json:"include_subdomains"`
	Proxy             *wireProxy `json:"proxy"`
	WaitConfig        *wireWait  `json:"wait_config"`
}

// wireCrawlPage is CrawlPageResult.
type wireCrawlPage struct {
	URL          string        `json:"url"`
	ParentURL    *string       `json:"parent_url"`
	Depth        int           `json:"depth"`
	Status       string        `json:"status"`
	ErrorCode    *string       `json:"error_code"`
	ErrorMessage *string       `json:"error_message"`
	Links        []string      `json:"links"`
	Data         *wireContent  `json:"data"`
	Metadata     *wireItemMeta `json:"metadata"`
}

// wireCrawlJob is CrawlJob. Results is left out of the summary that callbacks carry.
type wireCrawlJob struct {
	JobID          string           `json:"job_id"`
	URL            string           `json:"url"`
	Status         string           `json:"status"`
	CrawlConfig    *wireCrawlConfig `json:"crawl_config,omitempty"`
	TokenSummary   wireTokens       `json:"token_summary"`
	TotalPages     int              `json:"total_pages"`
	CompletedPages int              `json:"completed_pages"`
	FailedPages    int              `json:"failed_pages"`
	CancelledPages int              `json:"cancelled_pages"`
	CreatedAt      stamp            `json:"created_at"`
	CompletedAt    *stamp           `json:"completed_at"`
	Results        *[]wireCrawlPage `json:"results,omitempty"`
}

// wireCrawlCancelled is CrawlCancelled.
type wireCrawlCancelled struct {
	JobID         string `json:"job_id"`
	Status        string `json:"status"`
	StatusURL     string `json:"status_url"`
	InFlightPages int    `json:"in_flight_pages"`
}

// wireCrawlRow is CrawlJobSummary.
type wireCrawlRow struct {
	JobID          string           `json:"job_id"`
	URL            string           `json:"url"`
	Status         string           `json:"status"`
	TotalPages     int              `json:"total_pages"`
	CompletedPages int              `json:"completed_pages"`
	FailedPages    int              `json:"failed_pages"`
	Config         *wireCrawlConfig `json:"config"`
	CreatedAt      stamp            `json:"created_at"`
	CompletedAt    *stamp           `json:"completed_at"`
}

// wireNotice is JobNotice, the least a callback holds.
type wireNotice struct {
	JobID  string `json:"job_id"`
	Status string `json:"status"`
}

// wireEnvelope is WebhookEnvelope.
type wireEnvelope struct {
	Event      string `json:"event"`
	WebhookID  string `json:"webhook_id"`
	DeliveryID string `json:"delivery_id"`
	Timestamp  stamp  `json:"timestamp"`
	Data       any    `json:"data"`
}

// wireWebhook is Webhook, and WebhookWithSecret when Secret is set.
type wireWebhook struct {
	ID          string  `json:"id"`
	URL         string  `json:"url"`
	Description *string `json:"description"`
	IsActive    bool    `json:"is_active"`
	EventType   string  `json:"event_type"`
	CreatedAt   stamp   `json:"created_at"`
	UpdatedAt   stamp   `json:"updated_at"`
	Secret      string  `json:"secret,omitempty"`
}

// wireSecret is RotatedSecret.
type wireSecret struct {
	Secret string `json:"secret"`
}

// wireDelivery is WebhookDelivery.
type wireDelivery struct {
	ID            string  `json:"id"`
	EventType     string  `json:"event_type"`
	JobID         *string `json:"job_id"`
	AttemptNumber int     `json:"attempt_number"`
	Status        string  `json:"status"`
	HTTPStatus    *int    `json:"http_status"`
	DeliveredAt   *stamp  `json:"delivered_at"`
	CreatedAt     stamp   `json:"created_at"`
}

// wireUsage is Usage; the vendor's member names could not be read, so these are our own.
type wireUsage struct {
	Concurrency wireConcurrency `json:"concurrency"`
	Tokens      *wireQuota      `json:"tokens,omitempty"` // Only of an account with a limit.
}

// wireQuota is what may be spent. Used are charged and reserved ones.
type wireQuota struct {
	Limit     int64 `json:"limit"`
	Used      int64 `json:"used"`
	Remaining int64 `json:"remaining"`
}

type wireConcurrency struct {
	InUse int `json:"in_use"`
	Limit int `json:"limit"`
}

// wireStatistics is Statistics.
type wireStatistics struct {
	ExtractionCount         int              `json:"extraction_count"`
	PreviousExtractionCount int              `json:"previous_period_extraction_count"`
	SuccessRate             float64          `json:"success_rate"`
	AverageDuration         float64          `json:"average_extraction_duration"`
	PeriodTokensUsed        int              `json:"period_tokens_used"`
	Requests                []wireDayRequest `json:"requests"`
	TokensUsed              []wireDayTokens  `json:"tokens_used"`
}

// wireDayRequest is DailyRequests.
type wireDayRequest struct {
	Date    stamp `json:"date"`
	Success int   `json:"success_request_count"`
	Failed  int   `json:"failed_request_count"`
}

// wireDayTokens is DailyTokens.
type wireDayTokens struct {
	Date   stamp `json:"date"`
	Tokens int   `json:"tokens_used"`
}

// wireHealth is HealthStatus.
type wireHealth struct {
	Status string `json:"status"`
}
