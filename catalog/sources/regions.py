"""The country of a region name, per cloud, from the clouds' own region lists (facts, read November 2026).

Only names that are known are answered; an unknown region has no country rather than a guessed one.

>>> country_of("aws", "eu-north-1"), country_of("vast", "Denmark, DK, EU"), country_of("aws", "moon-1")
('SE', 'DK', '')
"""

import re

# cloud -> country -> region names
_REGIONS: dict[str, dict[str, str]] = {
    "aws": {
        "AE": "me-central-1",
        "AU": "ap-southeast-2 ap-southeast-4",
        "BH": "me-south-1",
        "BR": "sa-east-1",
        "CA": "ca-central-1 ca-west-1",
        "CH": "eu-central-2",
        "DE": "eu-central-1 eusc-de-east-1",
        "ES": "eu-south-2",
        "FR": "eu-west-3",
        "GB": "eu-west-2",
        "HK": "ap-east-1",
        "ID": "ap-southeast-3",
        "IE": "eu-west-1",
        "IL": "il-central-1",
        "IN": "ap-south-1 ap-south-2",
        "IT": "eu-south-1",
        "JP": "ap-northeast-1 ap-northeast-3",
        "KR": "ap-northeast-2",
        "MX": "mx-central-1",
        "MY": "ap-southeast-5",
        "NZ": "ap-southeast-6",
        "SE": "eu-north-1",
        "SG": "ap-southeast-1",
        "TH": "ap-southeast-7",
        "TW": "ap-east-2",
        "US": "us-east-1 us-east-2 us-west-1 us-west-2 us-gov-east-1 us-gov-west-1",
        "ZA": "af-south-1",
    },
    "azure": {
        "AE": "uaecentral uaenorth",
        "AT": "austriaeast",
        "AU": "australiacentral australiacentral2 australiaeast australiasoutheast",
        "BE": "belgiumcentral",
        "BR": "brazilsouth brazilsoutheast",
        "CA": "canadacentral canadaeast",
        "CH": "switzerlandnorth switzerlandwest",
        "CL": "chilecentral",
        "DE": "germanynorth germanywestcentral",
        "DK": "denmarkeast",
        "ES": "spaincentral",
        "FR": "francecentral francesouth",
        "GB": "uksouth ukwest",
        "HK": "eastasia",
        "ID": "indonesiacentral",
        "IE": "northeurope",
        "IL": "israelcentral",
        "IN": "centralindia southindia westindia jioindiacentral jioindiawest",
        "IT": "italynorth",
        "JP": "japaneast japanwest",
        "KR": "koreacentral koreasouth",
        "MX": "mexicocentral",
        "MY": "malaysiawest malaysiasouth",
        "NL": "westeurope",
        "NO": "norwayeast norwaywest",
        "NZ": "newzealandnorth",
        "PL": "polandcentral",
        "QA": "qatarcentral",
        "SE": "swedencentral swedensouth",
        "SG": "southeastasia",
        "US": "centralus eastus eastus2 northcentralus southcentralus westcentralus westus westus2 westus3",
        "ZA": "southafricanorth southafricawest",
    },
    "gcp": {
        "AU": "australia-southeast1 australia-southeast2",
        "BE": "europe-west1",
        "BR": "southamerica-east1",
        "CA": "northamerica-northeast1 northamerica-northeast2",
        "CH": "europe-west6",
        "CL": "southamerica-west1",
        "DE": "europe-west3 europe-west10",
        "ES": "europe-southwest1",
        "FI": "europe-north1",
        "FR": "europe-west9",
        "GB": "europe-west2",
        "HK": "asia-east2",
        "ID": "asia-southeast2",
        "IL": "me-west1",
        "IN": "asia-south1 asia-south2",
        "IT": "europe-west8 europe-west12",
        "JP": "asia-northeast1 asia-northeast2",
        "KR": "asia-northeast3",
        "MX": "northamerica-south1",
        "NL": "europe-west4",
        "PL": "europe-central2",
        "QA": "me-central1",
        "SA": "me-central2",
        "SE": "europe-north2",
        "SG": "asia-southeast1",
        "TW": "asia-east1",
        "US": "us-central1 us-central2 us-east1 us-east4 us-east5 us-east7 us-south1 us-west1 us-west2 us-west3 us-west4 us-west8",
        "ZA": "africa-south1",
    },
    "oci": {
        "AE": "me-abudhabi-1 me-dubai-1",
        "AU": "ap-melbourne-1 ap-sydney-1",
        "BR": "sa-saopaulo-1 sa-vinhedo-1",
        "CA": "ca-montreal-1 ca-toronto-1",
        "CH": "eu-zurich-1",
        "CL": "sa-santiago-1 sa-valparaiso-1",
        "CO": "sa-bogota-1",
        "DE": "eu-frankfurt-1",
        "ES": "eu-madrid-1 eu-madrid-3",
        "FR": "eu-marseille-1 eu-paris-1",
        "GB": "uk-cardiff-1 uk-london-1",
        "ID": "ap-batam-1",
        "IL": "il-jerusalem-1",
        "IN": "ap-hyderabad-1 ap-mumbai-1",
        "IT": "eu-milan-1",
        "JP": "ap-osaka-1 ap-tokyo-1",
        "KR": "ap-chuncheon-1 ap-seoul-1",
        "MX": "mx-monterrey-1 mx-queretaro-1",
        "NL": "eu-amsterdam-1",
        "SA": "me-jeddah-1 me-riyadh-1",
        "SE": "eu-stockholm-1",
        "SG": "ap-singapore-1 ap-singapore-2",
        "US": "us-ashburn-1 us-chicago-1 us-phoenix-1 us-sanjose-1",
        "ZA": "af-johannesburg-1",
    },
    "ibm": {
        "AU": "au-syd",
        "BR": "br-sao",
        "CA": "ca-tor ca-mon",
        "DE": "eu-de",
        "ES": "eu-es",
        "GB": "eu-gb",
        "JP": "jp-osa jp-tok",
        "US": "us-east us-south",
    },
    "lambda": {
        "AU": "australia-east-1",
        "DE": "europe-central-1",
        "IL": "me-west-1",
        "IN": "asia-south-1",
        "JP": "asia-northeast-1 asia-northeast-2",
        "US": "us-east-1 us-east-2 us-east-3 us-midwest-1 us-midwest-2 us-south-1 us-south-2 us-south-3 us-west-1 us-west-2 us-west-3",
    },
    "nebius": {
        "FI": "eu-north1 eu-north2",
        "FR": "eu-west1",
        "GB": "uk-south1",
        "IL": "me-west1",
        "US": "us-central1",
    },
    "ovhcloud": {
        "AU": "SYD",
        "CA": "BHS TOR",
        "DE": "FRA DE",
        "FR": "GRA SBG RBX PAR",
        "GB": "LON UK",
        "IN": "MUM",
        "PL": "WAW",
        "SG": "SGP",
        "US": "VIN HIL",
    },
    "paperspace": {"NL": "Europe (AMS1)", "US": "East Coast (NY2)"},
    "verda": {"FI": "FIN", "IS": "ICE"},
    "hyperstack": {"CA": "CANADA", "NO": "NORWAY", "US": "US"},
    "fluidstack": {"CA": "CANADA", "FI": "FINLAND", "NO": "NORWAY", "US": "USA", "IS": "ICELAND"},
    "digitalocean": {"CA": "tor", "DE": "fra", "GB": "lon", "NL": "ams", "SG": "sgp", "US": "atl nyc sfo ric"},
    "jarvislabs": {"FI": "EU", "IN": "IN"},
    "scp": {"KR": "KOREA"},
    "vultr": {
        "AU": "mel syd",
        "BR": "sao",
        "CA": "yto",
        "CL": "scl",
        "DE": "fra",
        "ES": "mad",
        "FR": "cdg",
        "GB": "lhr man",
        "IL": "tlv",
        "IN": "blr bom del",
        "JP": "itm nrt",
        "KR": "icn",
        "MX": "mex",
        "NL": "ams",
        "PL": "waw",
        "SE": "sto",
        "SG": "sgp",
        "US": "atl dfw ewr hnl lax mia ord sea sjc",
        "ZA": "jnb",
    },
}
# Words in shadeform's `city-country-number`, and the names of countries that TensorDock writes in one word.
_COUNTRY_WORDS = {
    "australia": "AU",
    "belgium": "BE",
    "brazil": "BR",
    "canada": "CA",
    "denmark": "DK",
    "finland": "FI",
    "france": "FR",
    "germany": "DE",
    "iceland": "IS",
    "india": "IN",
    "israel": "IL",
    "italy": "IT",
    "japan": "JP",
    "netherlands": "NL",
    "norway": "NO",
    "poland": "PL",
    "singapore": "SG",
    "spain": "ES",
    "sweden": "SE",
    "uk": "GB",
    "usa": "US",
}
# Countries in more words than one, or only at TensorDock, as that source writes them.
_COUNTRY_NAMES = {
    **_COUNTRY_WORDS,
    "austria": "AT",
    "bulgaria": "BG",
    "czech republic": "CZ",
    "czechia": "CZ",
    "hungary": "HU",
    "ireland": "IE",
    "portugal": "PT",
    "romania": "RO",
    "south korea": "KR",
    "switzerland": "CH",
    "taiwan": "TW",
    "ukraine": "UA",
    "united kingdom": "GB",
    "united states": "US",
}
_COUNTRY_BY_REGION = {
    cloud: {
        name: country for country, names in regions.items() for name in ([names] if "(" in names else names.split())
    }
    for cloud, regions in _REGIONS.items()
}


def country_of(cloud: str, region: str) -> str:
    """Return the two-letter country of `region` as `cloud` (a SkyPilot document's slug) writes it; "" when unknown."""
    if cloud in {"runpod", "primeintellect"}:
        return _code(region)
    if cloud in {"cudo", "seeweb", "scaleway"}:
        return _code(region.partition("-")[0].upper())
    if cloud == "vast":
        parts = [part.strip() for part in region.split(",")]
        return _code(parts[-2]) if len(parts) > 1 else ""
    if cloud == "shadeform":
        return next((_COUNTRY_WORDS[word] for word in region.lower().split("-") if word in _COUNTRY_WORDS), "")
    if cloud == "tensordock":
        return _COUNTRY_NAMES.get(region.strip().lower(), "")
    known = _COUNTRY_BY_REGION.get(cloud, {})
    return known.get(region) or known.get(_head(region), "")


def _code(text: str) -> str:
    code = text.strip().upper()
    if not re.fullmatch(r"[A-Z]{2}", code):
        return ""
    return "GB" if code == "UK" else code


def _head(region: str) -> str:
    """Return what stands before the number: 'FIN' of 'FIN-03', 'tor' of 'tor1', 'GRA' of 'GRA11'."""
    return re.split(r"[-_]?\d|[-_]", region, maxsplit=1)[0]
