package sandbox

import "strings"

// language is what made text is put together from.
type language struct {
	code, dir string
	join, end string // Between words, and after a sentence.
	words     []string
}

// languages are those that made pages are written in; two of them run from right to left.
func languages() []language {
	return []language{
		{"en", "ltr", " ", ".", strings.Fields("kettle lamp river garden blue quiet morning copper wooden small bright market " +
			"window paper engine mountain letter harbor silver winter bread travels carries opens remembers between")},
		{"de", "ltr", " ", ".", strings.Fields("Kessel Lampe Fluß Gärten blau ruhig Morgen kupfern hölzern klein hell Märkte " +
			"Fenster Papier Straße Gebirge Brief Hafen silbern Winter Brötchen reist trägt öffnet erinnert zwischen")},
		{"fr", "ltr", " ", ".", strings.Fields("bouilloire lampe rivière jardin bleu paisible matinée cuivre boisé petit clair " +
			"marché fenêtre papier moteur montagne lettre forêt argenté hiver pâté voyage porte façade rappelle où")},
		{"es", "ltr", " ", ".", strings.Fields("tetera lámpara río jardín azul tranquilo mañana cobre madera pequeño luminoso " +
			"mercado ventana papel motor montaña carta puerto plateado invierno pan viaja lleva señal recuerda entre")},
		{"ru", "ltr", " ", ".", strings.Fields("чайник лампа река сад синий тихий утро медный деревянный малый яркий рынок окно " +
			"бумага двигатель гора письмо гавань серебряный зима хлеб едет несёт открывает помнит между")},
		{"el", "ltr", " ", ".", strings.Fields("βραστήρας λάμπα ποτάμι κήπος μπλε ήσυχο πρωί χάλκινο ξύλινο μικρό φωτεινό αγορά " +
			"παράθυρο χαρτί μηχανή βουνό γράμμα λιμάνι ασημένιο χειμώνας ψωμί ταξιδεύει φέρνει ανοίγει θυμάται ανάμεσα")},
		{"ar", "rtl", " ", ".", strings.Fields("إبريق مصباح نهر حديقة أزرق هادئ صباح نحاسي خشبي صغير مشرق سوق نافذة ورق محرك " +
			"جبل رسالة ميناء فضي شتاء خبز يسافر يحمل يفتح يتذكر بين")},
		{"he", "rtl", " ", ".", strings.Fields("קומקום מנורה נהר גינה כחול שקט בוקר נחושת עץ קטן בהיר שוק חלון נייר מנוע הר " +
			"מכתב נמל כסוף חורף לחם נוסע נושא פותח זוכר בין")},
		{"ja", "ltr", "", "。", strings.Fields("やかん ランプ 川 庭園 青い 静かな 朝 銅の 木製の 小さな 明るい 市場 窓 紙 機関車 山 " +
			"手紙 港 銀色の 冬 パン 旅する 運ぶ 開く 思い出す あいだ")},
		{"hi", "ltr", " ", "।", strings.Fields("केतली दीपक नदी बगीचा नीला शांत सुबह तांबा लकड़ी छोटा उजला बाज़ार खिड़की काग़ज़ इंजन " +
			"पहाड़ चिट्ठी बंदरगाह चाँदी सर्दी रोटी चलता लाता खोलता याद बीच")},
	}
}

// words is n words of the page's language. They hold nothing that HTML would have to escape.
func (p *draft) words(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = p.lang.words[p.pick(len(p.lang.words))]
	}
	return strings.Join(out, p.lang.join)
}

func (p *draft) sentence() string { return p.words(6+p.pick(9)) + p.lang.end }

// emoji is a picture sign; some are several code points long.
func (p *draft) emoji() string {
	signs := []string{"🫖", "🎉", "👩‍🚀", "🇯🇵", "👍🏽", "❤️", "🦔", "🏳️‍🌈", "𝄞", "🧵"}
	return signs[p.pick(len(signs))]
}
