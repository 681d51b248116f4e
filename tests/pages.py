"""The public pages that the tests about all pages visit."""

PAGES = [
    "/",
    "/?sort=memory",
    "/gpus/",
    "/gpus/?vendor=AMD&sort=-memory_gb",
    "/gpus/h100-sxm/",
    "/gpus/max-1550/",
    "/use-cases/llm-training/",
    "/sources/",
    "/method/",
]
