"""Clouds under the names that sources and marketplaces give them, as the slug `data/clouds.csv` knows.

Slugs equal the folder names of the SkyPilot catalogue, but for DigitalOcean, whose folder there is `do`.
"""

OTHER_NAMES = {
    "amazon": "aws",
    "crusoecloud": "crusoe",
    "cudocompute": "cudo",
    "datacrunch": "verda",
    "do": "digitalocean",
    "google": "gcp",
    "jarvis": "jarvislabs",
    "lambdalabs": "lambda",
    "oracle": "oci",
    "ovh": "ovhcloud",
    # Data centres that Prime Intellect rents out under code names of its own.
    "dcgnu": "primeintellect",
    "dcimpala": "primeintellect",
    "dceland": "primeintellect",
    "dckudu": "primeintellect",
    "dcroan": "primeintellect",
    "dcwildebeest": "primeintellect",
    "primecompute": "primeintellect",
    "vastai": "vast",
}


def cloud_slug(name: str) -> str:
    """Return the slug of a cloud as a source names it; a name without another meaning stays, in lower case.

    >>> cloud_slug("lambdalabs"), cloud_slug("dc_roan"), cloud_slug("Nebius")
    ('lambda', 'primeintellect', 'nebius')
    """
    plain = name.strip().casefold()
    return OTHER_NAMES.get("".join(letter for letter in plain if letter.isalnum()), plain)
