package store_test

import (
	"testing"

	"rollcall/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
