"""All settings, read once from the environment.

Three environments (`BOURSE_ENV`): `demo` (embedded servers, sample data), `test`, and `production`, which is
the default and refuses to start without its secrets. Where the embedded servers live is `config.runtime`'s
business; this file only asks it for two addresses.
"""

from datetime import timedelta
from pathlib import Path

import django_stubs_ext
import environ
from celery.schedules import crontab

from catalog.sources import ALL_SOURCES
from config.runtime import addresses

django_stubs_ext.monkeypatch()  # lets `ModelAdmin[User]` be written where Django itself has no generics

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()

ENVIRONMENT: str = env.str("BOURSE_ENV", default="production")
IS_DEMO = ENVIRONMENT == "demo"
IS_TEST = ENVIRONMENT == "test"
IS_LOCAL = IS_DEMO or IS_TEST

SECRET_KEY: str = env.str("SECRET_KEY", default=addresses.local_secret_key() if IS_LOCAL else environ.Env.NOTSET)
DEBUG = False
ALLOWED_HOSTS: list[str] = env.list(
    "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]", "testserver"] if IS_LOCAL else []
)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.postgres",
    "django.contrib.sessions",
    "django.contrib.sitemaps",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "config",
    "common",
    "users",
    "fx",
    "billing",
    "catalog",
    "sizing",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "catalog.api.view.recall_answers",  # last: an answer given before is given again without asking which call it is
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["django.templatetags.i18n", "common.templatetags.figures"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.site.site",
            ],
        },
    }
]

# --- Database and broker: outside servers if named, else the embedded ones on unix sockets -----------------
DATABASES = {
    "default": {
        **env.db_url_config(env.str("DATABASE_URL", default=addresses.database_url())),
        "CONN_MAX_AGE": 0 if IS_TEST else 600,
        "CONN_HEALTH_CHECKS": True,
        # Server-side binding and prepared statements: a posting costs one round trip and no parsing.
        "OPTIONS": {"server_side_binding": True, "prepare_threshold": 1},
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL: str = env.str("REDIS_URL", default=addresses.redis_url())
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL, "KEY_PREFIX": "cache"}
}

CELERY_BROKER_URL = addresses.broker_url(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 600
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
# One schedule, reviewed in git. Each task asks the database what is due, so a missed or doubled tick is harmless.
CELERY_BEAT_SCHEDULE = {
    **{
        f"refresh-{source.name}": {
            "task": "catalog.refresh_due_sources",
            "kwargs": {"only": source.name},
            "schedule": timedelta(minutes=1),
            "options": {"expires": 60},
        }
        for source in ALL_SOURCES
    },
    "note-the-beat": {"task": "config.note_beat", "schedule": timedelta(seconds=5), "options": {"expires": 30}},
    "release-expired-holds": {
        "task": "billing.release_expired_holds",
        "schedule": timedelta(minutes=1),
        "options": {"expires": 60},
    },
    "roll-up-accounts": {
        "task": "billing.roll_up_accounts",
        "schedule": timedelta(minutes=5),
        "options": {"expires": 300},
    },
    "audit-books": {
        "task": "billing.audit_books",
        "schedule": crontab(hour=3, minute=17),
        "options": {"expires": 3600},
    },
    "refresh-due-rates": {"task": "fx.refresh_due_rates", "schedule": timedelta(hours=1), "options": {"expires": 600}},
    "take-snapshots": {
        "task": "catalog.take_snapshots",
        "schedule": timedelta(minutes=10),
        "options": {"expires": 600},
    },
    "thin-snapshots": {
        "task": "catalog.thin_snapshots",
        "schedule": crontab(hour=2, minute=41),
        "options": {"expires": 3600},
    },
}

# --- People ------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "users.User"
PASSWORD_HASHERS = (
    ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if IS_TEST
    else ["django.contrib.auth.hashers.Argon2PasswordHasher", "django.contrib.auth.hashers.PBKDF2PasswordHasher"]
)
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

# --- Language, time ----------------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("nl", "Nederlands"), ("pl", "Polski")]  # each in its own words
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

# --- Static files ------------------------------------------------------------------------------------------
STATIC_URL = "/static/"
STATIC_ROOT = addresses.static_root() if IS_LOCAL else BASE_DIR / "staticfiles"
STATICFILES_DIRS = [BASE_DIR / "static"]
_STATIC_STORAGE = {
    "production": "whitenoise.storage.CompressedManifestStaticFilesStorage",
    # Compressing the API viewer's bundles takes most of a minute: not while someone waits for a first start.
    "demo": "django.contrib.staticfiles.storage.ManifestStaticFilesStorage",
    "test": "django.contrib.staticfiles.storage.StaticFilesStorage",
}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _STATIC_STORAGE[ENVIRONMENT]},
}
WHITENOISE_USE_FINDERS = IS_TEST

# --- Security ----------------------------------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "strict-origin-when-cross-origin"
if not IS_LOCAL:
    SECURE_SSL_REDIRECT = env.bool("SECURE_SSL_REDIRECT", default=True)
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True

# --- API ---------------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "common.problems.ProblemSchema",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS is a method like any other that a call does not have
    "EXCEPTION_HANDLER": "drf_standardized_errors.handler.exception_handler",
    "URL_FORMAT_OVERRIDE": None,  # calls that know `?format=` declare it like their other parameters
}
_ERROR_STATUSES = ["400", "404", "405", "406", "412", "413", "415", "500"]
DRF_STANDARDIZED_ERRORS = {
    "EXCEPTION_HANDLER_CLASS": "common.problems.ProblemHandler",
    "EXCEPTION_FORMATTER_CLASS": "common.problems.ProblemFormatter",
    "ALLOWED_ERROR_STATUS_CODES": _ERROR_STATUSES,
    "ERROR_SCHEMAS": dict.fromkeys(_ERROR_STATUSES, "common.problems.ProblemSerializer"),
}
SPECTACULAR_SETTINGS = {
    "TITLE": "GPU Bourse API",
    "VERSION": "1",
    "DESCRIPTION": (
        "GPUs, what they cost, and where. Money is a string with its unit in the field's name; figures are numbers; "
        "null means that nobody published or told it. Times are RFC 3339 in UTC. Lists come in pages: follow `next`. "
        "Every answer carries `ETag` and `Last-Modified`; ask again with them and get 304 while nothing has changed. "
        "Errors are problem documents (`application/problem+json`) that name the field at fault."
    ),
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "PriceKind": ["exchange", "on_demand", "list"],
        "PageKind": ["vendor", "second"],
    },
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SORT_OPERATION_PARAMETERS": False,
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "defaultModelsExpandDepth": -1},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}

# --- Catalogue ---------------------------------------------------------------------------------------------
SOURCE_INTERVAL_MINUTES: int = env.int("SOURCE_INTERVAL_MINUTES", default=30)
SOURCE_TIMEOUT_SECONDS: int = env.int("SOURCE_TIMEOUT_SECONDS", default=20)
SOURCE_MAX_BYTES: int = env.int("SOURCE_MAX_BYTES", default=32 * 1024 * 1024)
# Keys of price sources by the name of their setting; blank = none. A source that needs one is not asked without it.
SOURCE_KEYS: dict[str, str] = {
    name: env.str(name, default="") for name in ("LAMBDA_API_KEY", "RUNPOD_API_KEY", "VAST_API_KEY")
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    # One line per task and tick would bury the rest.
    "loggers": {
        "celery.app.trace": {"level": "WARNING"},
        "celery.beat": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
        "httpx": {"level": "WARNING"},
    },
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
}
