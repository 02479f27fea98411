package views

// ScriptTexts are the texts that the scripts say, in English.
func ScriptTexts() []string {
	out := make([]string, 0, len(scriptTexts()))
	for _, each := range scriptTexts() {
		out = append(out, each.english)
	}
	return out
}

// Teach puts texts into the English catalog, as if the pages said them. Tests call it before any page is rendered.
func Teach(texts []string) {
	for _, each := range texts {
		if _, ok := catalogs()[English][each]; !ok {
			catalogs()[English][each] = phrase{formOther: each}
		}
	}
}
