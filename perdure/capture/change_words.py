"""Words that say what has become of something known: over, changed, said again. Patterns for folded English text."""

from __future__ import annotations

import re

FORGET = re.compile(
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

END = re.compile(
    r"\b(?:no longer|any ?more|any longer|no more"
    # what somebody stops doing
    r"|quit|quitting|g[ai]ve up|given up|giving up|(?<!bus )(?<!non-)stopped|ceased|packed (?:it |in )|kicked the"
    r"|weaned|came off"
    r"|dropped (?:out|the|my|our|it|that|this)|ditched|done with|finished with|through with|grew out of"
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
    r"|\b(?:don't|doesn't|do not|does not|isn't|aren't|am not|is not|are not|'m not|can't"
    r"|won't) .{0,80}\b(?:any ?more|any longer|after all)\b"
)
"""Something is over."""

INSTEAD = re.compile(
    r"\b(?:instead|switched (?:over )?to|moved (?:over )?to|replaced|rather|in favou?r of|now (?:use|using|on|at|in"
    r"|with|it's|i'm|we're)|"
    r"tea only|(?:use|using|on|with|have|at) [\w ]{1,30} now|(?:dropped|ditched|left|quit|sold|swapped"
    r"|gave up) [\w' ]{1,40} for (?:the|an?|my|our)? ?\w)\b"
)
"""Something else is there in its stead."""

CHANGE = re.compile(
    r"\b(?:actually|in fact|correction|correct (?:that|myself)|instead|now|by now|nowadays|these days|not any ?more"
    r"|anymore"
    r"|switched|changed|chang(?:es|ing) to|moved|moves to|shifted|renamed|rebranded|rescheduled|postponed|delayed"
    r"|pushed|put back|put off|brought forward|bumped"
    r"|slips?|slipped|updated?|upgraded|downgraded|migrated|ported|converted|used to|took over|takes over|replaced"
    r"|swapped|traded|transferred"
    r"|turned out|turns out|was wrong|were wrong|got (?:that|it|this) wrong|wrong|mistaken|my mistake|my bad"
    r"|misremembered|misspoke|misread|mixed (?:\w+ )?up|confused"
    r"|typo|oops|whoops|scratch that|i said|i meant|i mean|should (?:be|read|say)|sorry|wait|not the|more like"
    r"|closer to"
    r"|from now on|as of|as from|starting|effective|since (?:the|then|last)|(?:from|as of) \w+ on|finally|promoted"
    r"|raised|lowered|increased|reduced|halved|doubled|tripled|extended|shortened|cut to|went up|gone up|rose|risen"
    r"|grew to|grown to|shrank|fell to|down to|up to|dropped"
    r"|new (?:number|address|job|phone|e?mail|car|date|time|flat|place|boss|manager|deadline)|moved off|got a new"
    r"|no longer|stopped|quit|cancell?ed"
    r"|to be (?:precise|exact|specific)|more (?:exactly|precisely|specifically)|specifically|(?:not"
    r"|never) [\w ]{1,40}, (?:more|but|it|rather))\b"
)
"""Something is not as it was."""

REPEAT = re.compile(
    r"\b(?:(?:as|like) (?:i|we) (?:\w+ )?(?:said|mentioned|told|wrote)|as mentioned|as (?:you )?know"
    r"|already (?:said|told)|told you"
    r"|remember|once again|just to repeat|reminder)\b"
)
"""Something is said again."""

ALSO = re.compile(r"\b(?:also|as well|another (?:one|of)|in addition|a second|besides)\b|\btoo\b(?=[.,!]|$)")
"""Something is said beside what is known."""

FORMER = re.compile(
    r"\b(?:switched|moved|changed|migrated|migrating|going|went) (?:[\w ]{1,30} )?from ([\w .+#-]{2,60}?) to\b"
    r"|\b(?:instead of|replaced|swapped|rather than|traded) (?:the |my |our )?([\w .+#-]{2,60}?)(?=[,.;!]|$| now\b"
    r"| because\b| with\b| by\b| for\b)"
    r"|, not (?:on |in |at |the )*([\w .:+#-]{2,40}?)(?=[,.;!]|$)"
)
"""The value that something had before."""
