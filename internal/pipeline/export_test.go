package pipeline

// SealSecret seals a webhook's secret as the pipeline does.
func (p *Pipeline) SealSecret(webhookID int64, version int, secret string) []byte {
	return p.sealer.seal(secretPlace(webhookID, version), []byte(secret))
}

// GroupQueue is how many deliveries may wait for a commit.
const GroupQueue = groupQueue

// Queued is how many deliveries wait for a commit.
func (p *Pipeline) Queued() int { return len(p.groups.queue) }
