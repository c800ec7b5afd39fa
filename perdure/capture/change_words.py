"""Words that say what has become of something known: forgotten, over, changed. Patterns for folded English text."""

from __future__ import annotations

from perdure.regex import lazy

FORGET = lazy(
    r"^(?:(?:please|pls|ok(?:ay)?|can you|could you|would you|will you|you can|just|and|so|hey|also|actually"
    r"|oh)\b,? )*"
    r"(?:forget (?!to\b)|do(?:n't| not) (?:keep|store|remember|save) (?:anything|what|that|my|the|it)\b"
    r"|(?:stop|no need to) (?:remember|keep|stor)(?:ing)?\b|never mind (?:about |what |my |the )"
    r"|(?:delete|remove|erase|wipe|ignore|scrap|drop|discard|strike|disregard|clear|lose)"
    r" (?=(?:what|how|where|when|who|anything|everything|all)\b"
    r"|.{0,60}\b(?:from (?:your |the )?(?:memory|notes|records?|file)|rules?|notes?|ideas?|preferences?|memor(?:y"
    r"|ies)"
    r"|i (?:said|told you|mentioned|gave you))\b))"
)
"""Somebody asks for a memory to be dropped."""

END = lazy(
    r"\b(?:no longer|any ?more|any longer|no more"
    # what somebody stops doing
    r"|quit|quitting|g[ai]ve up|given up|giving up|(?<!bus )(?<!non-)stopped|ceased|packed (?:it |in )|kicked the"
    r"|weaned|came off"
    r"|dropped(?! by| off| in)|ripped out|moved off|got rid of|ditched|done with|finished with|through with|grew out of"
    r"|grown out of|outgr[eo]wn?"
    r"|parted with|said goodbye to|let go of|traded in|handed (?:it |them )?(?:back|in my)|hung up my|behind (?:me"
    r"|us)|thing of the past|left behind"
    r"|fired|laid off|let go|sacked|made redundant|kicked out|moved out|signed out|deregistered|deleted my"
    r"|finished (?:the|my|our)"
    r"|resigned|stepped down|stood down|withdrew|withdrawn|pulled out|backed out|bowed out|bailed|opted out"
    r"|unsubscribed"
    r"|left (?:the|my|our) (?:job|club|team|choir|band|board|company|group|league|council|committee|party|church"
    r"|union)"
    # what is called off
    r"|cancell?ed|cancell?ing|called (?:it |the [\w ]{1,20} )?off|fell through|fallen through|axed|(?:is|are|was"
    r"|were|'s|'re) off(?=[,.;!]|$| the table| again)"
    r"|nixed|on ice|on hold|suspended|fizzled out|annulled|broken off|broke off|rained off|no-go|isn't going ahead"
    r"|not going to happen|indefinitely"
    r"|scrapped|shelved|abandoned|binned|canned|vetoed|not happening|isn't happening|won't happen|won't be"
    r"|will not be"
    r"|isn't coming|not coming|aren't coming|not going ahead|not taking place|pulled the plug|came to nothing"
    r"|got rained off"
    # what is gone
    r"|sold (?:the|my|our|it|his|her|off)|g[ai]ve (?:it |them |the \w+ |my \w+ )?away|given away|donated|got rid of"
    r"|threw (?:out|away)|thrown (?:out|away)"
    r"|got stolen|was stolen|been stolen|passed away|died|is gone|are gone|has gone|'s gone|is dead|closed (?:down"
    r"|the|my|our)|shut down|went bust"
    r"|phased out|mothballed|demolished|torn down|taken down|switched off|turned off|disbanded|dissolved|wound up"
    r"|folded|sunset"
    r"|decommissioned|dismantled|uninstalled|deactivated|terminated|expired|lapsed|discontinued|ended"
    r"|is over(?! \w)|has ended|retired"
    r"|split up|broke up|broken up|separated|divorced|called it quits|parted ways"
    # what no longer holds
    r"|lifted|repealed|revoked|waived|reversed|overturned|abolished|doesn't apply|does not apply|no longer applies"
    r"|is void|out of date|outdated"
    r"|take (?:that|it|this) back|took it back|changed my mind|isn't true|not true|wasn't true"
    r"|was (?:only )?(?:a joke|joking|kidding)|made that up"
    r"|healed|recovered|gone away|went away|sorted out|free of|rid of"
    r"|all clear|got over|cured|cleared up|after all(?! (?:that|the|this|those|these|of)))\b"
)
"""Something is over."""

NOW_SO = lazy(
    r"\b(?:now|nowadays|these days|by now|from now on|as of|actually|in fact|instead)\b"
    r"|\b(?:correct(?:ion|ed| that)|typo|i (?:meant|misread|misspoke|had (?:it|that) wrong|got (?:it|that) wrong)"
    r"|was wrong|my mistake|mixed (?:it|that|them) up)\b"
)
"""What was said before is said otherwise, on purpose."""

_SETTING = (
    r"moved|changed|pushed|shifted|slid|slips?|slipped|postponed|rescheduled|put|bumped|brought|raised|lowered"
    r"|increased|reduced|cut|extended|updated|switched|set|turned|scaled|tightened|upgraded"
)
FRAMING = lazy(
    rf"\b(?:(?:has|have|had) been |was |were |been |got |has |have )?(?:{_SETTING})"
    r"(?: [\w' -]{1,40}?)?(?: back| forward| up| down| off)? to\b"
)
"""A value is set anew: in the past tense, but of what holds from now on."""

LIMITED = lazy(
    r"\?|\b(?:tomorrow|today|tonight|this (?:week|weekend|month|time|once|morning|afternoon|evening|\w+day)|next week"
    r"|for now|for the (?:time being|moment)|temporar\w+|until|till|during|unless|if|whenever|sometimes|occasionally"
    r"|only|just (?:once|this)|once|except|maybe|perhaps|might|could|should|would|wants?|wish|hope|think(?:ing)?"
    r"|says?|said|plan(?:ning|s)?|used to|last (?:night|week|month|year))\b"
)
"""It holds for a while, in one case, or in somebody's wishes."""

FORMER = lazy(
    r"\b(?:switched|moved|changed|migrated|migrating|going|went|cut over) (?:[\w ]{1,30} )?from"
    r" (?P<from>[\w .+#-]{2,60}?) to\b"
    r"|\b(?:instead of|rather than|replaced|swapped|traded) (?:the |my |our )?(?P<instead>[\w .+#-]{2,60}?)"
    r"(?=[,.;!]|$| now\b| because\b| with\b| by\b| for\b)"
    r"|\b(?P<by>[\w .+#-]{2,60}?) (?:has been|was|is|got) replaced (?:by|with)\b"
    r"|(?:,| and|\d) not (?:on |in |at |the |my |our )*(?P<not>[\w .:+#-]{1,40}?)(?=[,.;!]|$)"
    r"|\bnot (?P<but>[\w .:+#-]{1,40}?),? (?:but|more like|it's)\b"
)
"""The value that something had before."""
