"""Words and characters that say how a text is built rather than what it is about.

All are folded (see `perdure.text.normalise.fold`). Words that carry meaning in another of these
languages are left out: "war", "son", "man", "ten", "may", "uber".
"""

from __future__ import annotations

_ENGLISH = """
a about above after again against all also am an and any are as at be because been before being below
between both but by can cannot could did do does doing down during each else ever few for from further get
had has have having he her here hers herself him himself his how i if in into is it its itself just me might
more most must my myself no nor not now of off on once only or other ought our ours ourselves out over own
please same shall she should so some such tell than that the their theirs them themselves then there these
they this those through to too under until up us very was we were what when where which while who whom whose
why will with would yes yet you your yours yourself yourselves
"""
_GERMAN = """
aber als am an auch auf aus bei beim bin bist da das dass dein deine dem den denn der des dich die dir doch
du ein eine einem einen einer eines er es euch euer fur furs hab habe haben hast hat hatte ich ihm ihn ihr
ihre ihren im in ist ja kann kein keine konnen mein meine meinem meinen meiner mich mir mit nach nicht noch
nur oder sehr sein seine sich sie sind so und uns unser unsere vom von wann waren warum was welche welcher
welches wenn wer werden wie wir wird wo wurde zu zum zur
"""
_FRENCH = """
ai au aux avec avez avons ce ces cet cette comme dans de des du elle elles en est et etait eu il ils je la
le les leur leurs lui ma mais me mes mon ne nos notre nous on ont ou par pas plus pour qu quand que quel
quelle qui quoi sa sans se ses sommes sont suis sur ta te tes toi ton tu un une vos votre vous
"""
_SPANISH = """
al como con cual cuando de del donde el ella ellos en era es esa ese eso esta este esto fue ha hay la las le
lo los mas me mi mis muy no nos o para pero por porque que quien se ser si su sus te tiene tu tus un una y
ya yo
"""
_PORTUGUESE = """
ao aos as com como da das de do e ela ele em essa esse esta este eu foi isso mais mas meu meus minha minhas
na nao nas nem no nos o onde os ou para pela pelo por qual quando que quem se seu sua tem um uma voce
"""
_CZECH = """
ale ani az by byl byla byli bylo byt co do ho i ja jak jako je jeho jeji jejich jen jeste ji jsem jsi jsme
jsou jste k kde kdo kdy ke ktera ktere ktery ma mam mas me mi mne moje muj na nebo neni o od po pro proc s
se si sve svuj ta tak taky te to tom tu ty u uz v ve vsak z za ze
"""
_SWEDISH = """
att av da de dem den denna det detta dig din dina ditt du efter eller en er ett for fran ha hade han har hon
hur i inte jag kan med mig min mina mitt mot nar och om pa sa sig ska skulle som till upp ut vad var vara
vem vi vid vilken
"""
_KOREAN = "나 내 저 제 너 네 우리 그 이 것 거 수 뭐 무엇 무슨 어떤 언제 어디 누구 왜 어떻게 그리고 하지만 있는 하는"

STOP_WORDS: frozenset[str] = frozenset(
    " ".join((_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _PORTUGUESE, _CZECH, _SWEDISH, _KOREAN)).split()
)
"""Words that a query leaves out."""

FUNCTION_CHARS: frozenset[str] = frozenset(
    "的了是在我你您他她它们們这這那个個和與与就都也很不有没沒吗嗎呢吧啊什么麼甚哪谁誰怎为為会會要到说說上下中以对對于於之其"
    "はがをにでともへかのよねなだすしたているまあそこれら"
    "은는이가을를에의도로와과니다습요까"
)
"""Chinese, Japanese and Korean characters that mostly do grammar."""

PARTICLES: tuple[str, ...] = (
    *("에게서", "에서는", "으로는", "이라고", "에서", "에게", "한테", "으로", "까지", "부터", "처럼", "보다"),
    *("이랑", "이나", "하고", "라고", "은", "는", "이", "가", "을", "를", "에", "의", "도", "로", "와", "과"),
    *("만", "랑"),
)
"""Korean particles that are written at the end of a noun, longer ones first."""
