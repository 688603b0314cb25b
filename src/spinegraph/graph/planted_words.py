"""The vocabulary of the made organisation: departments with their words, and people's names."""

DEPARTMENTS = {
    "Engineering": """
        python kubernetes databases testing refactoring apis latency compilers linux
        deployment
    """,
    "Research": """
        statistics papers experiments simulation proofs optics chemistry grants models
        peer-review
    """,
    "Sales": """
        prospects quotas pipeline demos renewals territories pricing accounts
        negotiation forecasts
    """,
    "Marketing": """
        campaigns branding newsletters audiences copywriting events surveys social-media
        seo press
    """,
    "Finance": """
        budgets invoices audits taxes payroll ledgers cash-flow treasury reporting
        depreciation
    """,
    "Operations": """
        warehouses shipping suppliers inventory scheduling fleet maintenance customs
        packaging safety
    """,
    "Support": """
        tickets helpdesk onboarding manuals escalations refunds call-centre
        troubleshooting training chat
    """,
    "People": """
        hiring interviews benefits wellbeing appraisals mentoring relocation diversity
        contracts culture
    """,
    "Legal": """
        licences patents litigation privacy compliance trademarks statutes disputes
        governance contracts-law
    """,
    "Design": """
        typography wireframes prototypes colour accessibility sketches usability icons
        layouts motion
    """,
    "Product": """
        roadmaps backlog user-stories metrics launches personas prioritisation feedback
        releases scoping
    """,
    "Security": """
        firewalls encryption incidents threat-models passwords penetration logging
        phishing access keys
    """,
}

COMMON = """
    english spanish french german mandarin arabic spreadsheets presentations email planning meetings
    writing travel teamwork first-aid leadership volunteering cycling football cooking chess music
    photography gardening
"""

FIRST_NAMES = """
    Ada Aisha Akira Amara Ana Anders Anika Arjun Astrid Bao Beatriz Bruno Camille Carlos Chen Chidi
    Clara Daan Diego Dina Elena Elif Emeka Emil Erik Esra Farid Fatima Felix Freya Gita Hana Hassan
    Helena Hugo Ida Ines Ingrid Isabel Ivan Jamal Jana Jonas Julia Kaito Karim Kofi Lars Laila Leo Lin
    Luca Lucia Maja Malik Marco Maria Mateo Mei Mina Nadia Nia Nikolai Nina Noor Olga Omar Oscar Paula
    Pedro Priya Rafael Rana Ravi Rosa Ruth Sami Sara Sofia Sven Tariq Tessa Theo Tomas Uma Vera Viktor
    Wei Yara Yuki Zara Zoe
"""

LAST_NAMES = """
    Abebe Adeyemi Ahmed Almeida Andersen Aydin Bakker Banerjee Bauer Berg Bianchi Bonnet Boateng Castro
    Chandra Chopra Costa Cruz Dahl Das Delgado Demir Diallo Dubois Eriksen Farah Ferrari Fischer
    Fontaine Fujita Garcia Gomez Gupta Haddad Hansen Hara Hassan Hoffmann Horvat Ibrahim Ito Ivanov
    Jansen Johansson Kaya Keller Khan Kim Kovac Kowalski Kumar Larsen Laurent Lehmann Lim Lindqvist
    Lopez Mancini Marin Martins Mbeki Mehta Meyer Mensah Moreau Moretti Mori Mwangi Nakamura Nguyen
    Nielsen Novak Nowak Okafor Olsen Ortega Osei Ozturk Park Patel Pereira Petrov Popescu Ramos Rao
    Reyes Ricci Rossi Saito Salazar Santos Sato Schmidt Schneider Silva Singh Sokolov Soto Suzuki Takeda
    Tanaka Torres Tran Vargas Vega Visser Volkov Wagner Wang Weber Wong Yamada Yilmaz Zhang
"""
