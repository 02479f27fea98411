package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Sign is the value of X-Webhook-Signature for a body in the given form. id and timestamp are those of the delivery and
// matter only to the forms that sign them.
func Sign(form SignatureForm, secret, id, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, signingKey(form.Key, secret))
	switch form.Signed {
	case "id.body":
		mac.Write([]byte(id + "."))
	case "timestamp.body":
		mac.Write([]byte(timestamp + "."))
	}
	mac.Write(body)
	return form.Prefix + encodeSum(form.Encoding, mac.Sum(nil))
}

// signingKey is the bytes of the secret that sign; a secret that doesn't decode signs as it stands.
func signingKey(form, secret string) []byte {
	rest := strings.TrimPrefix(secret, "whsec_")
	switch form {
	case "rest":
		return []byte(rest)
	case "base64":
		if key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(rest, "=")); err == nil {
			return key
		}
	}
	return []byte(secret)
}

func encodeSum(form string, sum []byte) string {
	switch form {
	case "HEX":
		return strings.ToUpper(hex.EncodeToString(sum))
	case "base64":
		return base64.StdEncoding.EncodeToString(sum)
	case "base64url":
		return base64.RawURLEncoding.EncodeToString(sum)
	default:
		return hex.EncodeToString(sum)
	}
}
