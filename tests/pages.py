"""The public pages that the tests about all pages visit."""

PAGES = [
    "/",
    "/?sort=memory",
    "/gpus/",
    "/gpus/?vendor=AMD&sort=-memory_gb",
    "/gpus/h100-sxm/",
    "/gpus/max-1550/",
    "/prices/h100-sxm/",
    "/prices/h100-sxm/?market=spot&days=365",
    "/use-cases/llm-training/",
    "/market/",
    "/market/h100-sxm/",
    "/clouds/",
    "/clouds/?billing_step_max_seconds=60&sort=-live_offers",
    "/clouds/aws/",
    "/sources/",
    "/method/",
    "/terms-of-use/",
    "/privacy/",
    "/refunds/",
    "/imprint/",
]

# The same pages in another language are checked for what differs: words, their length, and the letters they need.
TRANSLATED = [
    f"/{language}{path}"
    for language in ("nl", "pl")
    for path in (
        "/",
        "/gpus/",
        "/gpus/h100-sxm/",
        "/prices/h100-sxm/",
        "/use-cases/llm-training/",
        "/market/",
        "/market/h100-sxm/",
        "/clouds/",
        "/clouds/aws/",
        "/sources/",
        "/method/",
        "/terms-of-use/",
        "/privacy/",
        "/refunds/",
        "/imprint/",
    )
]
