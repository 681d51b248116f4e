"""`/sizing/`: a model and a job in; memory, GPUs, hours and cost out.

The form is sent by POST and answered with the address that says the same, which is a page of its own: shareable, kept,
and free of blank answers. A config.json, pasted or uploaded, goes the same way: what the engine reads of it becomes part
of the address, and the file itself is stored nowhere. So a POST changes nothing and needs no token; the page without
one is the same for everybody.
"""

import json
from datetime import UTC, datetime
from http import HTTPStatus
from urllib.parse import urlencode

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from catalog.version import catalogue_version
from catalog.views.kept import kept_by
from fx.chosen import in_chosen_currency
from sizing.calculator.address import NAMES, address
from sizing.calculator.config_text import MOST_BYTES, ConfigTextError
from sizing.calculator.form import CalculatorForm, config_sent
from sizing.calculator.page import calculation
from sizing.calculator.upload import BoundedUpload
from sizing.engine.diffusion import REFERENCES
from sizing.engine.request import RequestError
from sizing.facts import presets

# A room of its own: people's questions are many, and shall not push other pages out.
kept_calculator = kept_by(catalogue_version)


@csrf_exempt  # nothing is stored and nothing depends on who asks
@require_http_methods(["GET", "HEAD", "POST"])
@kept_calculator
@in_chosen_currency
def calculate(request: HttpRequest) -> HttpResponse:
    """GET shows the questions of the address and their answer; POST leads to the address of what was sent."""
    if request.method == "POST":
        return take_answers(request)
    return show(request, CalculatorForm(request.GET.dict()))


def take_answers(request: HttpRequest) -> HttpResponse:
    """Lead to the address of what was sent; where a config cannot be read, say so at its field."""
    request.upload_handlers = [BoundedUpload(request)]
    sent = request.GET.dict()
    try:
        sent = request.POST.dict()
        config = config_sent(sent.get("config_text", ""), request.FILES.get("config_file"))
    except RequestDataTooBig:
        return show_trouble(request, sent, ConfigTextError("too_large"))
    except (ConfigTextError, RequestError) as problem:
        return show_trouble(request, sent, problem)
    if config is not None:
        sent = {**sent, "config": config, "model": "", "params_b": ""}
    query = urlencode(address(sent, before=request.GET.dict()))
    return HttpResponseRedirect(f"{reverse('calculator:calculator')}?{query}", status=HTTPStatus.SEE_OTHER)


def show_trouble(request: HttpRequest, sent: dict[str, str], problem: ConfigTextError | RequestError) -> HttpResponse:
    """Show the questions again with what is wrong with the config."""
    form = CalculatorForm({name: sent[name] for name in NAMES if name in sent})
    form.is_valid()
    if isinstance(problem, ConfigTextError):
        form.refuse_config(problem)
    else:
        form.refuse(problem)
    return show(request, form, status=HTTPStatus.BAD_REQUEST)


def show(request: HttpRequest, form: CalculatorForm, *, status: int = HTTPStatus.OK) -> HttpResponse:
    """Show the questions, and the answer where they can be answered."""
    now, found = datetime.now(UTC), None
    if form.is_valid():
        try:
            found = calculation(form, now=now)
        except RequestError as problem:
            form.refuse(problem)
    context = {
        "now": now,
        "form": form,
        "found": found,
        "presets": presets().values(),
        "most_kb": MOST_BYTES // 1024,
        "measured": REFERENCES,
        "api_body": json.dumps(found.fields_asked, indent=2) if found else "",
    }
    return render(request, "sizing/calculator.html", context, status=status)
