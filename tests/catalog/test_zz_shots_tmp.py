import csv, os, random
from datetime import date, datetime, UTC
import pytest
from playwright.sync_api import sync_playwright
from catalog.load_catalogue import load_catalogue, DATA
from catalog.models import Gpu
from tests.factories import make_live_offer, make_list_offer

@pytest.mark.django_db(transaction=True)
def test_shots(live_server):
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]="1"
    load_catalogue(now=datetime.now(UTC))
    gpus={g.slug:g for g in Gpu.objects.all()}
    for r in csv.DictReader((DATA/"reference_prices.csv").read_text().splitlines()):
        if r["gpu"] in gpus:
            n=r["gpu_count"]
            from decimal import Decimal
            make_list_offer(gpu=gpus[r["gpu"]], price=(Decimal(r["price_usd_per_hour"])/Decimal(n)).quantize(Decimal("0.000001")), cloud=r["cloud"], gpu_count=n, market=r["market"], priced_on=date.fromisoformat(r["priced_on"]), region=r["region"], instance_type=r["instance_type"]+str(random.random())[:6], url=r["source_url"])
    random.seed(1)
    for c in ("runpod","vast","lambda","nebius","verda","hyperstack"):
        for slug in random.sample(sorted(gpus),14):
            for m in ("on_demand","spot"):
                make_live_offer(gpu=gpus[slug], price=f"{random.uniform(.2,6):.4f}", cloud=c, market=m, hours_old=random.choice([.3,5,14]))
    with sync_playwright() as p:
        b=p.chromium.launch(executable_path=os.environ.get("CHROMIUM") or "/usr/bin/chromium", args=["--no-sandbox","--disable-gpu"])
        for w in (360,768,1440):
            for scheme in ("light","dark"):
                if w==768 and scheme=="dark": continue
                ctx=b.new_context(viewport={"width":w,"height":900},color_scheme=scheme)
                pg=ctx.new_page()
                for name,path in (("clouds","/clouds/"),("runpod","/clouds/runpod/"),("aws","/clouds/aws/"),("filtered","/clouds/?billing_step_max_seconds=7&persistent_volumes=1&sort=-live_offers"),("none","/clouds/?search=zzz")):
                    if name in("aws","none","filtered") and (scheme=="dark" or w==768): continue
                    pg.goto(live_server.url+path); pg.wait_for_timeout(300)
                    over=pg.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    print(w,scheme,name,"overflow",over)
                    pg.screenshot(path=f"/tmp/w/shots/{name}-{w}-{scheme}.png", full_page=True)
        b.close()
