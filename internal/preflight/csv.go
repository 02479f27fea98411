package preflight

func looksLikeCSV(Choices, *file) bool        { return false }
func (s *reading) readCSV(in *file) error     { return s.readTXT(in) }
func (s *reading) readJSONL(in *file) error   { return s.readTXT(in) }
func (s *reading) readSitemap(in *file) error { return s.readTXT(in) }
