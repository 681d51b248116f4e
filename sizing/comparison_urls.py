"""GPUs against each other. Stands before the catalogue's `gpus/<slug>/`, which would take these for a slug."""

from django.urls import path

from sizing.views.comparison import show_comparison, show_pair

app_name = "comparison"
urlpatterns = [
    path("compare/", show_comparison, name="compare"),
    path("<slug:a>-vs-<slug:b>/", show_pair, name="pair"),
]
