# ruff: noqa: RUF001 - words of many alphabets
"""Function words of common languages, which say little about what a text is about."""

from __future__ import annotations

from typing import Final

_LATIN: Final = (
    # English
    "a an the this that these those there here i me my myself you your yours yourself he him his "
    "himself she her hers herself it its itself we us our ours ourselves they them their theirs "
    "themselves who whom whose which what when where why how and but nor so if then than as of "
    "at by for from in into on onto off to up out over under with without within about against "
    "between through during before after above below again further once because until while is "
    "am are was were be been being have has had having do does did doing done can could might "
    "must shall should will would ought not no yes any some each every either neither both all "
    "few more most much many other another such only own same too very just also ever never "
    "always still yet now get gets got let s t d ll m re ve don doesn didn isn aren wasn weren "
    "won wouldn shouldn couldn cannot tell please know anyone someone something anything "
    "everything nothing one ones whether though although upon per via "
    # Spanish
    "el la los las un una unos unas lo del de en y e o u que como pero mas si ni por para con "
    "sobre entre hasta desde hacia segun tras ante bajo durante su sus mi mis tu tus nuestro "
    "nuestra nuestros nuestras yo ella ello nosotros vosotros ellos ellas usted ustedes te se le "
    "les nos os este esta estos estas ese esa esos esas eso esto aquel aquella quien quienes "
    "cual cuales cuando cuanto cuanta cuantos cuantas donde adonde porque muy tan tanto tambien "
    "ya aun todavia es era eran fue fueron ser sido siendo estan estaba estar hay ha han haber "
    "habia tiene tienen tener hace hacen puede pueden poder debe deben deber cada algo alguien "
    "alguno alguna nada nadie otro otra otros otras mismo misma "
    # French
    "des du au aux et ou mais donc ne pas plus qui quoi dont quand comment pourquoi combien quel "
    "quelle quels quelles ce cet cette ces ceci cela ca je il elle nous vous ils elles moi toi "
    "lui eux sa ses mon ma mes ta tes notre votre vos leur leurs dans par sur avec sans chez "
    "vers est sont etait etaient etre ete suis sommes etes ai avons avez ont avait avoir eu fait "
    "faire peut doit l c j n qu aussi tres "
    # German
    "der das den dem ein eine einer einem einen eines kein keine keiner keinen und oder aber "
    "denn weil dass ob wenn als wie wer wen wem wessen wann wo woher wohin warum wieso welche "
    "welcher welches welchen welchem ich er sie wir ihr mich dich sich uns euch ihn ihm ihnen "
    "mein meine dein deine sein seine seiner seinen seinem ihre ihrer ihren ihrem unser unsere "
    "nicht noch nur auch schon sehr mehr zu zum zur im ins auf aus bei beim mit nach von vom vor "
    "uber unter fur durch gegen ohne um bis ist sind bist gewesen haben hatte hatten habe wird "
    "werden wurde wurden worden kann konnen konnte muss mussen musste soll sollen sollte darf "
    "durfen wollen wollte dies dieser diese dieses "
    # Portuguese
    "uma umas ao aos da dos na nas pelo pela pelos pelas com sem sob nem quem qual quais quando "
    "quanto onde ele ela eles elas voce voces meu minha seu sua seus suas nosso nossa esse essa "
    "isso isto aquele aquela foi sao estao tem tinha ter nao sim ja muito tambem "
    # Italian
    "gli uno di dello della dei degli delle nel nella nei sul sulla dal dalla ed che chi cosa "
    "quale quali dove perche io lei noi voi loro ti ci vi suo suoi sue mio mia tuo tua questo "
    "questa questi queste quello quella sono essere stato hanno avere non piu anche molto tra "
    "fra "
    # Dutch
    "het een maar want dus dan dat deze dit hij zij ze wij jij jullie ik mij hem haar hun ons "
    "mijn jouw zijn onze wat welke wanneer waar waarom hoe niet geen wel ook nog voor op met aan "
    "bij uit naar door tot om ben bent heeft hebben kan kunnen moet moeten zal zullen wordt "
)
_CYRILLIC: Final = (
    "и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее "
    "мне было вот от меня еще нет о из ему теперь когда даже ну ли если уже или ни быть был него "
    "до вас нибудь опять уж вам ведь там потом себя ничего ей может они тут где есть надо ней "
    "для мы тебя их чем была сам чтоб без будто чего раз тоже себе под будет ж тогда кто этот "
    "того потому этого какой какая какое какие ним здесь этом один почти мой тем чтобы нее были "
    "куда зачем всех можно при об это эта эти которые который которая "
)
_WITHOUT_SPACES: Final = (
    # Chinese
    "的 了 是 在 有 和 与 及 或 也 都 就 不 没 吗 呢 吧 啊 么 什 谁 哪 怎 为 被 把 给 对 从 向 "
    "到 这 那 个 我 你 他 她 它 们 很 会 能 要 可 以 而 但 因 所 如 则 之 其 请 问 什么 怎么 "
    "哪里 哪个 为什 多少 我们 你们 他们 她们 没有 可以 不能 不要 这个 那个 因为 所以 的是 是什 "
    "有什 在哪 是谁 请问 几个 "
    # Japanese
    "は が を に の と で も へ や か ね よ な だ た て し す る い う り れ ら く け ま さ そ "
    "こ あ お ん え ど 何 誰 です ます した して ます ません から まで など これ それ あれ どこ "
    "いつ どの どれ なに なぜ ない ある いる する この その あの ので のに には では とは でし "
    "ました ので "
    # Korean
    "이 그 저 것 수 는 은 를 을 의 에 와 과 도 로 가 무엇 누가 어디 언제 왜 어떻게 "
    # Thai
    "ของ และ หรือ เป็น อยู่ ไหน ใคร อะไร ทำไม เมื่อ อย่างไร เท่าไร เท่าไหร่ ให้ ด้วย จาก โดย "
    "เพราะ แต่ ถ้า ครับ นะคะ ไหม หรือเปล่า ที่ไหน คือ ซึ่ง เขา เธอ ฉัน ผม พวก "
)

FUNCTION_WORD_TEXTS: Final = (_LATIN, _CYRILLIC, _WITHOUT_SPACES)
"""Words separated by spaces, as they are written.

Words that are common nouns in another of these languages are missing: the rarity of a word in the
searched texts tells them apart.
"""
