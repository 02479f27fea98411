package pipeline

import "rollcall/internal/export"

// What goes into a file, in the writer's own words, for those who ask for files.
type (
	// ExportChoices say what goes into a file.
	ExportChoices = export.Choices
	// ExportFormat is the kind of a file.
	ExportFormat = export.Format
	// ExportColumn is a line of the table that documents the files.
	ExportColumn = export.Column
	// RejectedTable is a file of the lines that became no item.
	RejectedTable = export.RejectedTable
	// RejectedRow is a line of it.
	RejectedRow = export.RejectedRow
)

// The formats that have choices of their own.
const (
	ExportCSV = export.CSV
	ExportZIP = export.ZIP
)

// ExportFormats are all of them, in the order they are offered.
func ExportFormats() []ExportFormat { return export.Formats() }

// ExportColumns are those that files may have, in their order.
func ExportColumns() []ExportColumn { return export.Columns() }

// DefaultExport are the choices of somebody who made none.
func DefaultExport(f ExportFormat) ExportChoices { return export.Default(f) }

// SafeCell is a cell of a CSV file that no spreadsheet takes for a formula.
func SafeCell(text string) string { return export.SafeCell(text) }

// FileName names a result's file: for any file system, and no other item's; it
// has no ending.
func FileName(address string, item int64) string { return export.FileName(address, item) }
