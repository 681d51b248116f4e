"""The calculator's address."""

from django.urls import path

from sizing.views.calculator import calculate

app_name = "calculator"
urlpatterns = [path("", calculate, name="calculator")]
