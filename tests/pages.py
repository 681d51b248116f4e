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
    "/clouds/",
    "/clouds/?billing_step_max_seconds=60&sort=-live_offers",
    "/clouds/aws/",
    "/sources/",
    "/method/",
]
