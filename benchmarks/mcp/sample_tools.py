"""Invented tools of many services, always the same: 40 toolsets of 25 tools, as servers of these domains offer them."""

from collections.abc import Iterator

from habilis.tools import Tool, Toolset
from habilis.tools.contract import ToolOptions

SERVICES = """
code: issue=bugs and feature requests of a repository|title body labels; pull_request=proposed changes to be reviewed and merged|title branch reviewers; repository=source code and its settings|name visibility; branch=lines of development|name source; release=published versions with notes|tag notes
pipelines: run=builds and test runs, with their status|workflow branch; deployment=releases of a version to an environment|environment version; job=steps of a build with their logs|name; runner=machines that execute builds|labels; artifact=files that a build has produced|name path
mail: message=e-mails, in the inbox or sent|to subject body; draft=e-mails that are not sent yet|to subject body; folder=mailboxes and their rules|name; attachment=files of an e-mail|message_id name; filter=rules that sort incoming mail|criteria action
calendar: event=meetings and appointments with their guests|title start end guests; availability=free and busy times of people|person day; reminder=notices before an event|event_id minutes; room=meeting rooms to reserve|name capacity; invitation=answers of guests to a meeting|event_id answer
chat: message=posts in a channel or a conversation|channel text; channel=rooms of a team|name topic; thread=replies to a message|message_id text; reaction=emoji on messages|message_id emoji; member=people of a workspace|name status
drive: file=documents, sheets and pictures in shared storage|name folder content; folder=directories of files|name parent; permission=who may read or change a file|file_id person role; version=earlier states of a file|file_id; comment=remarks on a file|file_id text
crm: contact=people at customers, with phone and address|name email phone; company=customers and prospects|name industry; deal=sales opportunities and their stage|name amount stage; task=follow-ups for the sales team|title due; activity=calls and visits at customers|contact_id text
payments: charge=payments by card or bank|amount currency customer; refund=money paid back to a customer|charge_id amount; subscription=recurring payments and their plans|customer plan; payout=transfers to a bank account|amount; dispute=charges that a customer contests|charge_id evidence
accounting: invoice=bills to customers with their lines|customer lines due; expense=costs by category and receipt|amount category; account=the ledger and its balances|name kind; tax_return=periods and amounts of tax|period; supplier=companies that we buy from|name
people: employee=staff with role and manager|name role; leave_balance=days of vacation that are left|employee_id year; leave_request=requests for days off|employee_id start end; payslip=salaries by month|employee_id month; applicant=candidates for open positions|name position
weather: conditions=temperature, wind and humidity at a place now|place; forecast=rain, sun and temperature of the next days|place days; alert=warnings of storms and floods|region; station=places that measure|name; history=past weather by day|place day
maps: route=the way between two places by car, bike or on foot|origin destination mode; place=shops, restaurants and sights around a point|near kind; address=coordinates of an address and back|text; area=boundaries of regions|name; traffic=jams and road works|road
travel: flight=air connections with times and fares|origin destination day; booking=reservations of rooms, seats and cars|offer traveller; hotel=places to stay with prices|city nights; train=rail connections|origin destination day; itinerary=all parts of a trip|name
shipping: shipment=parcels and where they are|receiver weight; label=stickers with address and barcode to print|shipment_id format; rate=prices of carriers|origin destination weight; pickup=collection by a carrier|day address; customs_form=declarations for parcels abroad|shipment_id
inventory: stock_level=quantity of an item in each warehouse|item warehouse; item=goods with their codes|name code; transfer=goods moved between warehouses|item quantity; supplier_order=goods ordered to fill up|item quantity; stock_count=results of counting|warehouse
database: row=records of a table that match a SQL query|table statement; schema=tables with columns and types|table; index=structures that make queries fast|table columns; backup=copies of a database|name; user=accounts of a database server|name role
cloud: instance=virtual machines: start, stop, restart|image size; bucket=object storage|name region; secret=passwords and keys in the vault|name value; dns_record=names and addresses of a zone|zone name value; network=private networks and firewalls|name
monitoring: alert=problems that were detected, with their cause|rule severity; silence=times without notifications|matcher hours; dashboard=charts of metrics|title; metric=time series of servers|name; incident=outages with their timeline|title
markets: quote=the price of a share now|symbol; currency_rate=exchange rates between currencies|base target; portfolio=holdings of an account|name; order=buying and selling of securities|symbol quantity; dividend=payments of companies to holders|symbol
language: translation=text in another language|text target; glossary=terms with fixed translations|name; detection=the language of a text|text; correction=spelling and grammar of a text|text; summary=the essence of a long text|text length
home: light=lamps of a room, on, off and dimmed|room brightness; thermostat=heating of a room|room degrees; camera=pictures of cameras|name; lock=doors|name state; scene=settings of several devices together|name
music: playback=what plays now, on which speaker|track speaker; playlist=lists of tracks|name; track=songs by title and artist|title; artist=musicians and bands|name; album=records with their tracks|title
news: article=reports by topic and date|topic; source=newspapers and agencies|name; topic=subjects to follow|name; digest=daily summaries|topics; bookmark=saved reports|article_id
wiki: page=pages of a knowledge base|title text; space=collections of pages|name; template=models of pages|name; revision=earlier states of a page|page_id; label=words that classify pages|page_id name
forms: form=questionnaires with their questions|title questions; response=what people have filled in|form_id; question=single questions of a form|form_id text; theme=looks of a form|colour; share_link=addresses of a form|form_id
support: ticket=requests of customers for help|subject text priority; answer=replies to a ticket|ticket_id text; agent=members of the help desk|name; macro=prepared answers|title text; rating=how content customers were|ticket_id
campaigns: campaign=mailings to many people|name audience; audience=lists of subscribers|name; subscriber=people who get a newsletter|email; layout=designs of newsletters|name; report=opened and clicked mails|campaign_id
social: post=publications on a network|text; profile=accounts and their followers|name; story=posts that vanish after a day|media; mention=posts that name us|since; schedule=times of future posts|post_id time
fitness: workout=training sessions|kind minutes; sleep_record=nights and their phases|day; goal=aims such as steps a day|kind value; heart_rate=pulse by minute|day; weight=body weight by day|day
recipes: recipe=dishes with ingredients|title; ingredient=foods with nutrients|name; meal_plan=dishes of a week|week; shopping_list=what to buy|items; pantry_item=foods at home|name
pdf: document=PDF files|path; form_field=fields of a PDF to fill in|document_id name; signature=signatures under a PDF|document_id; merge=several PDFs as one|documents; extraction=texts and tables of a PDF|document_id
images: picture=generated and edited images|prompt size; background=what is behind the subject|picture_id; caption=descriptions of images|picture_id; variant=similar images|picture_id; album_cover=square pictures with a title|title
analytics: visit=visitors of a web site|site; funnel=steps until a purchase|site; segment=groups of visitors|rule; goal=what visitors should do|name; experiment=tests of two versions|name
contracts: contract=agreements with parties and terms|title parties; clause=standard paragraphs|title; approval=who has agreed inside|contract_id; obligation=duties and their dates|contract_id; party=companies of a contract|name
education: course=courses with lessons|title; enrolment=students of a course|course_id student; assignment=homework|course_id title; grade=marks of students|assignment_id; lesson=units of a course|course_id
books: book=titles of a library|title author; loan=books that are lent|book_id reader; reservation=books that readers wait for|book_id; reader=members of a library|name; review=opinions about books|book_id text
sports: match=games with their results|league; team=clubs and their players|name; player=athletes|name; league=tables and seasons|name; ticket_offer=seats in a stadium|match_id
video: clip=films to watch|title; subtitle=texts under a film|clip_id language; stream=live transmissions|title; transcript=what is said in a film|clip_id; thumbnail=preview pictures|clip_id
ads: advert=paid announcements|text; budget=money per day|amount; keyword=words that trigger an advert|word; placement=where adverts appear|site; conversion=purchases after a click|advert_id
energy: meter_reading=consumption of electricity and gas|meter; tariff=prices per kilowatt hour|region; contract=supply of a household|address; solar_yield=output of panels|day; charging_session=loading of electric cars|station
""".strip().splitlines()
"""Per service its resources: what they are, and the fields that are set in one."""

VERBS = {
    'list': 'List or search {what}, newest first.',
    'get': 'Get one of the {what}, by its id or key.',
    'create': 'Create a new {name}: {what}.',
    'update': 'Change some fields of a {name}: {what}. Fields that are not given stay as they are.',
    'delete': 'Delete or cancel a {name} ({what}). This cannot be undone.',
}
CAMEL_CASE = frozenset({'crm', 'maps', 'cloud', 'support', 'video'})
"""Services whose names are written like `crmCreateDeal`."""


def toolsets(count: int) -> list[Toolset]:
    """The first tools of all services, so many together."""
    each, made = max(1, count // len(SERVICES)), list[Toolset]()
    for line in SERVICES[: max(1, count // each)]:
        service = line.partition(':')[0]
        made.append(Toolset(service, list(_tools(line))[:each]))
    return made


def same_name(one: str, other: str) -> bool:
    """Whether two names are the same, however they are written."""
    return one.replace('_', '').lower() == other.replace('_', '').lower()


def _tools(line: str) -> Iterator[Tool[..., object]]:
    service, _, resources = line.partition(':')
    for resource in resources.split(';'):
        name, _, rest = resource.strip().partition('=')
        what, _, fields = rest.partition('|')
        for verb, text in VERBS.items():
            yield _tool(service, verb, name, text.format(name=name.replace('_', ' '), what=what), fields.split())


def _tool(service: str, verb: str, resource: str, text: str, fields: list[str]) -> Tool[..., object]:
    name = f'{service}_{verb}_{resource}{"s" if verb == "list" and not resource.endswith(("s", "y")) else ""}'
    if verb == 'list' and resource == 'availability':
        name = f'{service}_list_availability'
    if service in CAMEL_CASE:
        first, *others = name.split('_')
        name = first + ''.join(word.capitalize() for word in others)
    parameters = {
        'list': f"query: str = '', {''.join(f'{field}: str | None = None, ' for field in fields)}limit: int = 20",
        'get': f'{resource}_id: str, expand: list[str] | None = None',
        'create': ', '.join(f'{field}: str' for field in fields),
        'update': ', '.join([f'{resource}_id: str', *(f'{field}: str | None = None' for field in fields)]),
        'delete': f'{resource}_id: str, force: bool = False',
    }[verb]
    result = {'list': 'list[dict[str, str]]', 'delete': 'None'}.get(verb, 'dict[str, str]')
    made: dict[str, object] = {}
    exec(f'def {name}({parameters}) -> {result}:\n    {text!r}\n    return {name!r}, locals()', made)  # noqa: S102
    function = made[name]
    assert callable(function)
    reads = verb in {'list', 'get'}
    return Tool(function, options=ToolOptions(read_only=reads, destructive=verb == 'delete'))
