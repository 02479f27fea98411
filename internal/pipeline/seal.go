package pipeline

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

// sealer encrypts what must not be readable in the database: AES-256-GCM with
// a random nonce in front, and associated data that names the place, so that
// a sealed value copied to another row does not open there.
type sealer struct{ gcm cipher.AEAD }

// ErrSealed reports a sealed value that this key or place does not open.
var ErrSealed = errors.New("sealed value does not open with this key")

func newSealer(key []byte) (*sealer, error) {
	if len(key) != 32 {
		return nil, fmt.Errorf("the secret key has %d bytes, not 32", len(key))
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, fmt.Errorf("secret key: %w", err)
	}
	return &sealer{gcm: gcm}, nil
}

func (s *sealer) seal(place string, plain []byte) []byte {
	nonce := make([]byte, s.gcm.NonceSize())
	_, _ = rand.Read(nonce) // It never fails: crypto/rand ends the program instead.
	return s.gcm.Seal(nonce, nonce, plain, []byte(place))
}

func (s *sealer) open(place string, sealed []byte) ([]byte, error) {
	n := s.gcm.NonceSize()
	if len(sealed) < n {
		return nil, fmt.Errorf("%s: %w", place, ErrSealed)
	}
	plain, err := s.gcm.Open(nil, sealed[:n], sealed[n:], []byte(place))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", place, ErrSealed)
	}
	return plain, nil
}

// secretPlace names the row of a webhook's secret version.
func secretPlace(webhookID int64, version int) string {
	return fmt.Sprintf("webhook_secrets/%d/%d", webhookID, version)
}

// headersPlace names the column of custom headers. A batch's id is not known
// before its row is written, so the place is the column alone.
const headersPlace = "batches/headers"
