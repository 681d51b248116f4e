import math, random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
import pytest
from axe_playwright_python.sync_playwright import Axe
from catalog.history_queries import hour_of
from catalog.models import Gpu, PriceSnapshot
from tests.factories import make_live_offer, make_best_ask
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

@pytest.mark.parametrize("path", ["/use-cases/llm-training/", "/prices/h100-sxm/"])
def test_shot(open_page, path):
    random.seed(3)
    hour = hour_of(datetime.now(UTC))
    rows = []
    slugs = ["b300","b200","mi325x","h200-sxm","mi300x","h100-nvl","h100-sxm","a100-sxm-80gb"]
    for gpu in Gpu.objects.filter(slug__in=slugs):
        base = float(gpu.memory_gb) / 28
        for cloud, f in (("lambda",1),("vast",1.2),("aws",1.9),("nebius",1.4)):
            make_live_offer(gpu=gpu, price=f"{base*f:.4f}", cloud=cloud)
        make_live_offer(gpu=gpu, price=f"{base*.5:.4f}", cloud="vast", market="spot")
        days = 60 if gpu.slug == "h100-sxm" else 31
        for market, factor in (("on_demand",1),("spot",.5)):
            price = base*factor
            for age in range(days*24, -1, -1):
                if 200 < age < 290 or (age % 97 == 5): continue
                if random.random() < .06: price = max(base*factor*.9, price * (1 + random.uniform(-.04,.04)))
                p = Decimal(f"{price:.4f}")
                rows.append(PriceSnapshot(gpu=gpu, market=market, at=hour-timedelta(hours=age), min=p, p25=(p*Decimal("1.15")).quantize(Decimal("0.0001")), median=(p*Decimal("1.3")).quantize(Decimal("0.0001")), p75=(p*Decimal("1.6")).quantize(Decimal("0.0001")), offers=4))
    g = Gpu.objects.get(slug="l4"); make_live_offer(gpu=g, price="0.70")
    rows.append(PriceSnapshot(gpu=g, market="on_demand", at=hour, min=Decimal("0.7"), p25=Decimal("0.7"), median=Decimal("0.7"), p75=Decimal("0.7"), offers=1))
    PriceSnapshot.objects.bulk_create(rows)
    for theme in ("light", "dark"):
        for width in (360, 1100, 1280, 1440):
            visit = open_page(path, width=width, theme=theme)
            page = visit.page
            if width == 1440 and theme == "light":
                page.screenshot(path=f"/tmp/w/shots/{path.strip('/').replace('/','_').replace('?','-') or 'board'}-closed.png")
            page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            found = Axe().run(page)
            name = f"/tmp/w/shots/{path.strip('/').replace('/','_').replace('?','-') or 'board'}-{width}-{theme}.png"
            page.screenshot(path=name, full_page=True)
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            print(path, width, theme, found.violations_count, overflow, visit.complaints, len(page.content()))
            if found.violations_count: print(found.generate_report()[:1500])
