"""Words that ask for the same attribute: whoever asks how old somebody is asks for the birthday, too.

An everyday thesaurus of what is kept about people and systems. It only ever lifts a doubt, so a word in a group that
does not fit costs little, and one that is missing costs a memory.
"""

from __future__ import annotations

from collections.abc import Callable

_GROUPS = """
address apartment based city country flat home hometown house live location move reside resident settle stay town
boss career colleague company employ employer firm job manage office occupation position profession retire,
  role team title work
age birth birthday born old turn year
amount budget charge cost euro dollar expense expensive fee invoice money paid pay price rent salary spend worth
call contact dial email extension mail mobile number phone reach ring speak talk telephone write
allergic allergy breakfast cook diet dietary dinner dish drink eat food intolerant lunch meal serve vegan vegetarian
class college course degree graduate learn lesson phd school study subject teach teacher thesis university
anniversary bride couple engaged husband marriage marry partner spouse wedding wife
baby child daughter kid newborn pregnant son twin
brother sibling sister twin
dad father mother mum parent
boss chief cto director head lead leader manage manager owner report run supervisor take
clinic disease doctor dose drug hospital hurt ill illness injury medical medication medicine pain pill sick,
  surgery tablet treatment
animal cat dog pet puppy vet
automobile car drive garage vehicle
bicycle bike cycle ride
aisle airport flight fly plane seat
camp destination holiday journey stay travel trip vacation visit
adore dislike enjoy fan favourite favorite fond hate hobby like loathe love prefer preference stand
band instrument music orchestra play practise rehearse song
exercise gym jog marathon race run sport swim train
arrive begin join launch open release ship start
close deadline deliver due end expire finish last leave quit stop submit until valid
clear fix help mend remedy repair resolve solve workaround
directory disk file find folder keep kept locate path place put save store where
appointment book date meet schedule slot time
cadence daily every frequency hourly monthly nightly often weekly
migrate release switch update upgrade version
choose chose decide decision instead pick replace switch
build deploy pipeline release ship
backup copy restore retain retention snapshot
database postgres server sql
host machine port server
alias called codename known mean name nickname refer stand
colour color paint shade
language speak spoken tongue
author create made wrote write
because cause raise reason trigger why
"""


def groups(stem: Callable[[str], str]) -> dict[str, frozenset[int]]:
    """Return, by a word's stem, the numbers of the groups that it is in."""
    found: dict[str, set[int]] = {}
    for number, line in enumerate(_GROUPS.replace(",\n", "").strip().splitlines()):
        for word in line.split():
            found.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}
