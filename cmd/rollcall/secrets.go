package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"rollcall/internal/pipeline"
	"rollcall/store"
)

// secretsCmd looks after what is encrypted at rest.
type secretsCmd struct {
	Rekey     secretsRekeyCmd     `cmd:"" help:"Encrypt everything with another key, while no server runs."`
	BeginAnew secretsBeginAnewCmd `cmd:"" help:"When the key is lost: give up what it encrypted and go on with the present one, while no server runs."`
}

type secretsRekeyCmd struct {
	NewKeyFile string `name:"new-key-file" required:"" type:"path" help:"File with the new key, base64 of 32 bytes, readable by its owner only."`
	JSON       bool   `name:"json" help:"Print one JSON object."`
}

// Run seals everything anew: what ROLLCALL_SECRET_KEY, or secret.key in the
// data folder, opens now opens with the new key afterwards.
func (c *secretsRekeyCmd) Run(ctx context.Context, a *app) error {
	oldKey, err := a.config.loadSecretKey()
	if err != nil {
		return fmt.Errorf("old key: %w", err)
	}
	newKey, err := readSecretKey(c.NewKeyFile)
	if err != nil {
		return fmt.Errorf("new key: %w", err)
	}
	var done pipeline.Rekeyed
	err = a.withDatabase(ctx, func(ctx context.Context, s *stack) error {
		// One connection: others that are seen are then somebody else's.
		st, err := store.Open(ctx, store.Config{DSN: s.dsn, MaxConns: 1})
		if err != nil {
			return err
		}
		done, err = pipeline.Rekey(store.WithActor(ctx, commandActor()), st, oldKey, newKey, a.now())
		return errors.Join(err, st.Close())
	})
	if errors.Is(err, pipeline.ErrSealed) {
		return errors.New("the old key does not open what is stored, so nothing was changed: give the one that this database was begun with as ROLLCALL_SECRET_KEY")
	}
	if err != nil {
		return err
	}
	return c.tell(a, done)
}

func (c *secretsRekeyCmd) tell(a *app, done pipeline.Rekeyed) error {
	if c.JSON {
		return json.NewEncoder(a.out).Encode(done)
	}
	_, err := fmt.Fprintf(a.out, "sealed anew: %d webhook secrets, %d batches' headers\nstart the servers with the new key from now on: ROLLCALL_SECRET_KEY, or secret.key in the data folder\n",
		done.Secrets, done.Headers)
	return err
}

type secretsBeginAnewCmd struct {
	JSON bool `name:"json" help:"Print one JSON object."`
}

// Run gives up what only a lost key opened, and says what to do about it.
func (c *secretsBeginAnewCmd) Run(ctx context.Context, a *app) error {
	key, err := a.config.loadSecretKey()
	if err != nil {
		return err
	}
	var done pipeline.Disowned
	err = a.withDatabase(ctx, func(ctx context.Context, s *stack) error {
		st, err := store.Open(ctx, store.Config{DSN: s.dsn, MaxConns: 1})
		if err != nil {
			return err
		}
		done, err = pipeline.Disown(store.WithActor(ctx, commandActor()), st, key, a.now())
		return errors.Join(err, st.Close())
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(a.out).Encode(done)
	}
	_, err = fmt.Fprintf(a.out, "given up: %d webhook secrets, custom headers of %d batches and checks\n", done.Secrets, done.Headers)
	if err == nil && len(done.Webhooks) > 0 {
		_, err = fmt.Fprintln(a.out, "start the server; until these are done, deliveries are answered 503 and kept, and jobs come home by polling:")
	}
	for _, id := range done.Webhooks {
		if err == nil {
			_, err = fmt.Fprintf(a.out, "  rollcall webhook rotate %d\n", id)
		}
	}
	if err == nil && done.Headers > 0 {
		_, err = fmt.Fprintln(a.out, "what has yet to be sent with lost headers is cancelled, with that reason; submit it again with its headers")
	}
	return err
}
