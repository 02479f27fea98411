package views

import "strings"

// A look is how one word of the database is shown: color never alone, always with an icon and text.
type look struct {
	tone string // suffix of a CSS class: ok, info, wait, warn, bad, calm
	icon string // name in the sprite
	text string
}

// itemLook covers the states of items and the two kinds of lines that never became items.
func itemLook(word string) look {
	switch word {
	case "outstanding":
		return look{"wait", "circle-dashed", "Outstanding"}
	case "stored":
		return look{"ok", "circle-check", "Stored"}
	case "failed":
		return look{"bad", "circle-x", "Failed"}
	case "cancelled":
		return look{"calm", "ban", "Cancelled"}
	case "invalid":
		return look{"bad", "alert-circle", "Invalid"}
	case "duplicate":
		return look{"calm", "copy", "Duplicate"}
	default:
		return unknownLook(word)
	}
}

func jobLook(word string) look {
	switch word {
	case "intended":
		return look{"calm", "clock", "Intended"}
	case "calling":
		return look{"info", "phone-call", "Calling"}
	case "accepted":
		return look{"wait", "loader", "Accepted"}
	case "uncertain":
		return look{"warn", "help-circle", "Uncertain"}
	case "settled":
		return look{"ok", "circle-check", "Settled"}
	case "refused":
		return look{"bad", "circle-x", "Refused"}
	case "withdrawn":
		return look{"calm", "ban", "Withdrawn"}
	case "split":
		return look{"calm", "arrows-split-2", "Split"}
	case "given_up":
		return look{"bad", "clock-exclamation", "Given up"}
	default:
		return unknownLook(word)
	}
}

func netLook(word string) look {
	switch word {
	case "webhook":
		return look{"webhook", "webhook", "Webhook"}
	case "poll":
		return look{"poll", "rotate-clockwise", "Poll"}
	case "reconcile":
		return look{"reconcile", "list-check", "Reconcile"}
	case "replay":
		return look{"replay", "history", "Replay"}
	case "sync":
		return look{"sync", "bolt", "Sync"}
	default:
		return unknownLook(word)
	}
}

func verdictLook(word string) look {
	switch word {
	case "accepted":
		return look{"ok", "circle-check", "Accepted"}
	case "duplicate":
		return look{"calm", "copy", "Duplicate"}
	case "held":
		return look{"wait", "hourglass", "Held"}
	case "foreign":
		return look{"calm", "world", "Foreign"}
	case "unreadable":
		return look{"warn", "file-text", "Unreadable"}
	case "refused", "bad_signature", "missing_signature", "unsigned":
		return look{"bad", "shield-x", refusedText(word)}
	default:
		return unknownLook(word)
	}
}

func refusedText(word string) string {
	switch word {
	case "bad_signature":
		return "Bad signature"
	case "missing_signature":
		return "Missing signature"
	case "unsigned":
		return "Unsigned"
	default:
		return "Refused"
	}
}

func webhookLook(word string) look {
	switch word {
	case "active":
		return look{"ok", "circle-check", "Active"}
	case "registering":
		return look{"wait", "loader", "Registering"}
	case "rotating":
		return look{"wait", "refresh", "Rotating"}
	case "secret_unknown":
		return look{"bad", "key", "Secret unknown"}
	case "paused":
		return look{"calm", "player-pause", "Paused"}
	case "off":
		return look{"calm", "plug-connected-x", "Off"}
	case "inactive", "disabled", "gone", "moved":
		return look{"bad", "plug-connected-x", awayText(word)}
	default:
		return unknownLook(word)
	}
}

func awayText(word string) string {
	switch word {
	case "inactive":
		return "Inactive"
	case "disabled":
		return "Disabled"
	case "gone":
		return "Gone"
	default:
		return "Moved"
	}
}

func rotationLook(word string) look {
	switch word {
	case "calling":
		return look{"wait", "refresh", "Asking the vendor"}
	case "secret_unknown":
		return look{"bad", "key", "Secret unknown"}
	case "stored":
		return look{"wait", "loader", "Looking through"}
	case "done":
		return look{"ok", "circle-check", "Done"}
	case "failed":
		return look{"bad", "circle-x", "Not done"}
	default:
		return unknownLook(word)
	}
}

func roleLook(word string) look {
	switch word {
	case RoleAdmin:
		return look{"info", "key", "Admin"}
	case RoleOperator:
		return look{"info", "adjustments", "Operator"}
	case RoleAnalyst:
		return look{"calm", "user", "Analyst"}
	default:
		return unknownLook(word)
	}
}

func unknownLook(word string) look {
	if word == "" {
		return look{"calm", "help-circle", dash}
	}
	return look{"calm", "info-circle", sentence(word)}
}

// sentence turns "bad_signature" into "Bad signature".
func sentence(word string) string {
	text := strings.ReplaceAll(word, "_", " ")
	if text == "" {
		return dash
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// kindText is the kind of a batch. "Sync" is the vendor's word for what the pages call to try one URL now.
func kindText(kind string) string {
	switch kind {
	case "sync":
		return "Tried now"
	case "batch":
		return "Batch"
	case "extract":
		return "Extract"
	case "crawl":
		return "Crawl"
	case "auto":
		return "Auto"
	default:
		return sentence(kind)
	}
}

// sentIn is how the URLs of a batch are sent, beside the number of the batch.
func sentIn(kind string) string {
	switch kind {
	case "batch":
		return "many URLs a job"
	case "extract":
		return "one URL a job"
	case "crawl":
		return "a crawl"
	default:
		return kindText(kind)
	}
}
