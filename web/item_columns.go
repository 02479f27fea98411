package web

import (
	"context"
	"fmt"

	"rollcall/store"
	"rollcall/views"
)

// shownColumns and shownValue bound what a page shows of an item's line: columns, and characters of each; exports
// have all of it.
const (
	shownColumns = 50
	shownValue   = 1000
)

// lineColumns reads what came with an item's line beside its URL.
func (s *Server) lineColumns(ctx context.Context, itemID int64) (views.LineColumns, error) {
	columns, total, err := s.store.ItemColumns(ctx, itemID, shownColumns, shownValue+1)
	if err != nil {
		return views.LineColumns{}, fmt.Errorf("columns of item %d: %w", itemID, err)
	}
	return shownLine(columns, total), nil
}

func shownLine(columns []store.ItemColumn, total int) views.LineColumns {
	var shown views.LineColumns
	for _, each := range columns {
		if value := []rune(each.Value); len(value) > shownValue {
			each.Value = string(value[:shownValue]) + "…"
		}
		shown.Shown = append(shown.Shown, views.Pair{Name: each.Name, Value: each.Value})
	}
	if more := total - len(columns); more > 0 {
		shown.More = views.Known(int64(more))
	}
	return shown
}
