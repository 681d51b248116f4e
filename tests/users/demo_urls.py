"""The addresses of the demo, for the tests of its mail."""

from django.conf.urls.i18n import i18n_patterns

from config.urls import demo_patterns, urlpatterns

urlpatterns = [*i18n_patterns(*demo_patterns, prefix_default_language=False), *urlpatterns]
