"""The use-case pages."""

from django.urls import path

from sizing.views.llm_training import show_llm_training

app_name = "sizing"
urlpatterns = [path("llm-training/", show_llm_training, name="llm-training")]
