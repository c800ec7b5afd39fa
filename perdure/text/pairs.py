"""Questions with a memory that answers each: what a model's cosines are measured by.

Each is about something else, so the memory of any other pair is unrelated to it. They are written for this use, in the
words of everyday life. Nearly none share a telling word: words are searched for without a model.
"""

from __future__ import annotations

_LINES = """
Where do I keep the spare key? | The extra key hangs behind the fuse box in the hallway.
What breed is our dog? | We adopted a border collie from the shelter.
Which instrument am I learning? | I take cello lessons every other week.
How do I like my coffee? | I drink my espresso black and without sugar.
Who is my dentist? | Doctor Okafor looks after my teeth.
What car do we drive? | Our family vehicle is a silver Volvo estate.
When is the rent due? | The landlord expects the money on the third of each month.
Which shell do I use on my laptop? | My terminal runs fish on every computer.
What must I not eat? | Peanuts make my throat swell, I avoid them.
Where did we spend our honeymoon? | After the wedding we travelled through Sicily for two weeks.
Which team do I support? | I have been a fan of Celtic since I was a child.
How tall is my daughter? | Mia measures one metre twelve now.
What is the name of the wireless network? | Our wifi at home is called Bluebird.
Where is the office? | Our company sits on the fourth floor of the old mill.
Which editor should you open for me? | I write all my code in Helix.
What do I take for my headaches? | Against migraine I swallow a triptan tablet.
How should answers be formatted? | Please reply in short bullet points.
Which language does my grandmother speak? | Grandma only talks in Polish.
What time do I get up? | My alarm rings at half past five.
Which colour will the bedroom be? | We are painting the walls where we sleep sage green.
What is my shoe size? | I wear boots in forty-three.
Who takes care of the garden? | A neighbour called Piet mows the lawn and trims the hedge.
Where does my brother study? | Tom is reading law at the university of Leiden.
Which bank do we use? | Our savings are with Triodos.
What is the next race I train for? | I am preparing for the marathon in October.
Which airline do I prefer? | I would rather fly with Finnair than with anybody else.
How is the backup made? | A script copies the database to another disk each night.
What is in the freezer for dinner? | There is still a lasagne on ice that we can eat tonight.
Which book did I borrow? | Lena lent me her copy of Middlemarch.
What wakes the baby? | The little one cannot sleep when the doorbell rings.
Which framework is the website built with? | The front end of our site is written in Svelte.
Who cuts my hair? | My barber is Salvatore on the corner of the market square.
What happened to my knee? | I tore a ligament while skiing and had surgery.
Which tea is good for guests? | Visitors get jasmine green tea from the blue tin.
When does the train to my parents leave? | The express to mum and dad departs at ten past eight.
What is our budget for the kitchen? | We can spend twelve thousand on the new cooker and cupboards.
Which religion was I raised in? | I was brought up as a Quaker.
What kind of music calms me? | I relax by listening to slow piano pieces.
Where are the winter tyres? | The garage stores our snow wheels until November.
Who leads the marketing department? | Priya is the head of advertising and campaigns.
What do I want for my birthday? | A telescope would be the perfect present for me.
How do we deploy? | Releases go out through the pipeline when a tag is pushed.
Which school do the children go to? | Both kids attend the Montessori near the park.
What is wrong with the washing machine? | The laundry appliance leaks when it spins.
Who inherits the farm? | According to the will the land passes to my cousin Ruth.
Which phone do I own? | I bought a Fairphone last spring.
What did the doctor say about my blood pressure? | My hypertension has to be checked every quarter.
Which island would I like to move to? | My dream is to live on Madeira one day.
How many hens do we have? | Seven chickens live in the coop behind the shed.
What is my job? | I earn my living as a translator of novels.
Which gym do I go to? | I lift weights at the fitness club by the station.
What is my opinion on meetings? | I find long calls with many people a waste of time.
Which wine goes into the cellar? | We are laying down six bottles of Barolo.
Where is the passport? | My travel document lies in the top drawer of the desk.
What am I afraid of? | Heights and open lifts terrify me.
Which timezone does the customer work in? | The client is in Vancouver, nine hours behind us.
What is the cat called? | Our tabby listens to the name Pixel.
Which database does the billing service need? | Invoices are kept in Postgres sixteen.
How do I relax on Sundays? | At the weekend I like to build model ships.
Who will be the witness at our wedding? | Jonas is going to be best man when we marry.
"""
PAIRS: tuple[tuple[str, str], ...] = tuple(
    (question, memory) for question, _, memory in (line.partition(" | ") for line in _LINES.strip().splitlines())
)
"""Question and memory, 60 of them."""
