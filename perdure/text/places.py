"""Names of places that are told from other names: countries, and the towns that people most often live in.

"I moved to Linz" tells where somebody lives, "We moved to Revit" does not, and only the name shows which.
"""

from __future__ import annotations

from perdure.text.normalise import fold

_COUNTRIES = """
Afghanistan, Albania, Algeria, Angola, Argentina, Armenia, Australia, Austria, Azerbaijan, Bahrain, Bangladesh, Belarus,
Belgium, Bolivia, Bosnia, Botswana, Brazil, Bulgaria, Cambodia, Cameroon, Canada, Chile, China, Colombia, Congo,
Costa Rica, Croatia, Cuba, Cyprus, Czechia, the Czech Republic, Denmark, Ecuador, Egypt, El Salvador, England, Estonia,
Ethiopia, Fiji, Finland, France, Germany, Ghana, Greece, Greenland, Guatemala, Haiti, Honduras, Hong Kong, Hungary,
Iceland, India, Indonesia, Iran, Iraq, Ireland, Israel, Italy, Ivory Coast, Jamaica, Japan, Jordan, Kazakhstan, Kenya,
Kosovo, Kuwait, Laos, Latvia, Lebanon, Liberia, Libya, Liechtenstein, Lithuania, Luxembourg, Madagascar, Malawi,
Malaysia, Mali, Malta, Mauritius, Mexico, Moldova, Monaco, Mongolia, Montenegro, Morocco, Mozambique, Myanmar, Namibia,
Nepal, the Netherlands, New Zealand, Nicaragua, Nigeria, Northern Ireland, North Macedonia, Norway, Oman, Pakistan,
Panama, Paraguay, Peru, the Philippines, Poland, Portugal, Puerto Rico, Qatar, Romania, Russia, Rwanda, Samoa,
Saudi Arabia, Scotland, Senegal, Serbia, Sierra Leone, Singapore, Slovakia, Slovenia, Somalia, South Africa,
South Korea, Spain, Sri Lanka, Sudan, Sweden, Switzerland, Syria, Taiwan, Tanzania, Thailand, Tonga, Tunisia, Turkey,
Uganda, Ukraine, the UK, the US, the USA, Uruguay, Uzbekistan, Venezuela, Vietnam, Wales, Yemen, Zambia, Zimbabwe
"""
_REGIONS = """
Alaska, Alberta, Andalusia, Arizona, Bavaria, Brittany, British Columbia, California, Catalonia, Colorado, Connecticut,
Cornwall, Devon, Flanders, Florida, Galicia, Hawaii, Idaho, Illinois, Indiana, Iowa, Kansas, Kent, Kentucky, Lapland,
Louisiana, Maine, Manitoba, Maryland, Massachusetts, Michigan, Minnesota, Montana, Nebraska, Nevada, New Hampshire,
New Jersey, New Mexico, New South Wales, North Carolina, Normandy, Nova Scotia, Ohio, Oklahoma, Ontario, Oregon,
Pennsylvania, Provence, Quebec, Queensland, Saskatchewan, Saxony, Sicily, South Carolina, Sussex, Tasmania, Tennessee,
Texas, Tuscany, Tyrol, Utah, Vermont, Virginia, Wisconsin, Wyoming, Yorkshire
"""
_EUROPE = """
Aachen, Aalborg, Aarhus, Aberdeen, Amsterdam, Antwerp, Athens, Augsburg, Barcelona, Bari, Basel, Bath, Belfast,
Belgrade, Bergen, Berlin, Bern, Bilbao, Birmingham, Bochum, Bologna, Bonn, Bordeaux, Braga, Braunschweig, Bratislava,
Bremen, Brighton, Bristol, Brno, Bruges, Brussels, Bucharest, Budapest, Cadiz, Cambridge, Cardiff, Chemnitz, Cluj,
Cologne, Copenhagen, Cork, Coventry, Debrecen, Delft, Dijon, Dortmund, Dresden, Dublin, Dundee, Düsseldorf, Edinburgh,
Eindhoven, Erfurt, Essen, Exeter, Florence, Frankfurt, Freiburg, Galway, Gdansk, Geneva, Genoa, Ghent, Girona, Glasgow,
Gothenburg, Göttingen, Granada, Graz, Grenoble, Groningen, Hamburg, Hanover, Heidelberg, Helsinki, Hull, Innsbruck,
Istanbul, Jena, Karlsruhe, Kassel, Kaunas, Kharkiv, Kiel, Klagenfurt, Konstanz, Kosice, Krakow, Kyiv, Köln, Lausanne,
Leeds, Leicester, Leiden, Leipzig, Leuven, Lille, Limerick, Linz, Lisbon, Liverpool, Ljubljana, Lodz, London, Lucerne,
Lund, Lviv, Lyon, Madrid, Magdeburg, Mainz, Malaga, Malmö, Manchester, Mannheim, Marburg, Marseille, Milan, Minsk,
Montpellier, Moscow, München, Munich, Münster, Nantes, Naples, Newcastle, Nice, Norwich, Nottingham, Nuremberg, Odesa,
Oldenburg, Oslo, Osnabrück, Ostrava, Oulu, Oxford, Palermo, Paris, Pisa, Plymouth, Porto, Potsdam, Poznan, Prague,
Reading, Regensburg, Rennes, Reykjavik, Riga, Rome, Rostock, Rotterdam, Salzburg, Sarajevo, Seville, Sheffield, Skopje,
Sofia, Southampton, Split, Stavanger, St Gallen, Stockholm, Strasbourg, Stuttgart, Szczecin, Tallinn, Tampere, Tartu,
Thessaloniki, The Hague, Timisoara, Tirana, Torun, Toulouse, Trier, Trieste, Tromsø, Trondheim, Turin, Turku, Uppsala,
Utrecht, Valencia, Venice, Verona, Vienna, Vilnius, Warsaw, Wiesbaden, Winterthur, Wroclaw, York, Zagreb, Zaragoza,
Zurich
"""
_AMERICAS = """
Albuquerque, Anchorage, Atlanta, Austin, Baltimore, Bogota, Boise, Boston, Brasilia, Buenos Aires, Buffalo, Calgary,
Caracas, Chicago, Cincinnati, Cleveland, Columbus, Cusco, Dallas, Denver, Des Moines, Detroit, Edmonton, El Paso,
Fort Worth, Guadalajara, Guayaquil, Halifax, Havana, Houston, Indianapolis, Kansas City, Las Vegas, Lima, Los Angeles,
Louisville, Medellin, Memphis, Mexico City, Miami, Milwaukee, Minneapolis, Monterrey, Montevideo, Montreal, Nashville,
New Orleans, New York, New York City, Oakland, Omaha, Orlando, Ottawa, Panama City, Philadelphia, Pittsburgh, Portland,
Porto Alegre, Puebla, Quito, Raleigh, Recife, Rio de Janeiro, Rosario, Sacramento, Salt Lake City, Salvador,
San Antonio, San Diego, San Francisco, San Jose, San Juan, Santiago, Sao Paulo, Seattle, St Louis, Tampa, Tijuana,
Toronto, Tucson, Tulsa, Vancouver, Victoria, Washington, Winnipeg
"""
_ELSEWHERE = """
Abidjan, Abu Dhabi, Accra, Addis Ababa, Adelaide, Ahmedabad, Alexandria, Algiers, Amman, Ankara, Auckland, Baghdad,
Baku, Bali, Bangalore, Bangkok, Beijing, Beirut, Bengaluru, Brisbane, Busan, Cairo, Calcutta, Canberra, Cape Town,
Casablanca, Chengdu, Chennai, Christchurch, Colombo, Dakar, Dar es Salaam, Darwin, Delhi, Dhaka, Doha, Dubai, Dunedin,
Durban, Fukuoka, Guangzhou, Haifa, Hamilton, Hangzhou, Hanoi, Harare, Ho Chi Minh City, Hobart, Hyderabad, Islamabad,
Izmir, Jaipur, Jakarta, Jeddah, Jerusalem, Johannesburg, Kabul, Kampala, Karachi, Kathmandu, Kigali, Kobe, Kolkata,
Kuala Lumpur, Kyoto, Lagos, Lahore, Luanda, Lusaka, Manila, Maputo, Marrakesh, Melbourne, Mumbai, Nagoya, Nairobi,
New Delhi, Osaka, Perth, Phnom Penh, Pretoria, Pune, Rabat, Riyadh, Saigon, Sapporo, Seoul, Shanghai, Shenzhen, Sydney,
Taipei, Tashkent, Tbilisi, Tehran, Tel Aviv, Tokyo, Tunis, Ulaanbaatar, Wellington, Windhoek, Wuhan, Yangon, Yerevan,
Yokohama
"""
_PLACES = frozenset(
    fold(name.strip().removeprefix("the "))
    for names in (_COUNTRIES, _REGIONS, _EUROPE, _AMERICAS, _ELSEWHERE)
    for name in names.split(",")
)


def is_place(name: str) -> bool:
    """Return whether a name is that of a known country, region or town, or begins or ends with one ("Bergen, Norway").

    Args:
        name: as it was written.
    """
    parts = [part.strip().removeprefix("the ") for part in fold(name).split(",")]
    return any(part in _PLACES for part in parts)
