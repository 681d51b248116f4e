"""All settings, read once from the environment.

Three environments (`BOURSE_ENV`): `demo` (embedded servers, sample data), `test`, and `production`, which is
the default and refuses to start without its secrets. Where the embedded servers live is `config.runtime`'s
business; this file only asks it for two addresses.
"""

from decimal import Decimal
from pathlib import Path

import django_stubs_ext
import environ
from django.core.exceptions import ImproperlyConfigured

from billing.gateway.keys import fault_of_keys
from billing.tax.territories import MEMBER_STATES
from config.runtime import addresses
from config.schedule import FLEET_SCHEDULE, SCHEDULE

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
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "config",
    "common",
    "users",
    "fx",
    "billing",
    "catalog",
    "marketplace",
    "sizing",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "users.private.keep_private",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
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
# A web process that nudges a worker does not wait for a broker that is away: beat finds the work in its row.
CELERY_BROKER_TRANSPORT_OPTIONS = {"max_retries": 0, "socket_connect_timeout": 0.5}
CELERY_TIMEZONE = "UTC"
DEMO_FLEET: bool = IS_DEMO and env.bool("DEMO_FLEET", default=False)
CELERY_BEAT_SCHEDULE = {**SCHEDULE, **(FLEET_SCHEDULE if DEMO_FLEET else {})}

# --- People ------------------------------------------------------------------------------------------------
AUTH_USER_MODEL = "users.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = (
    ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if IS_TEST
    else ["django.contrib.auth.hashers.Argon2PasswordHasher", "django.contrib.auth.hashers.PBKDF2PasswordHasher"]
)
# Length and a list of common ones; no rule about kinds of characters, which only makes them guessable.
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "users.passwords.MaximumLengthValidator", "OPTIONS": {"max_length": 128}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "users:account"
LOGOUT_REDIRECT_URL = "catalog:board"
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
B2C_ENABLED: bool = env.bool("B2C_ENABLED", default=IS_LOCAL)

ACCOUNT_ADAPTER = "users.adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True  # only in the browser that signed up
ACCOUNT_CHANGE_EMAIL = True  # one address each; a new one counts once it is confirmed
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_EMAIL_SUBJECT_PREFIX = ""
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_METHODS = {"password", "mfa"}
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_FORMS = {
    "login": "users.forms.LoginForm",
    "add_email": "users.forms.ChangeEmailForm",
    "change_password": "users.forms.ChangePasswordForm",
    "set_password": "users.forms.SetPasswordForm",
    "reset_password": "users.forms.ResetPasswordForm",
    "reset_password_from_key": "users.forms.ResetPasswordKeyForm",
    "reauthenticate": "users.forms.ReauthenticateForm",
}
# Behind one proxy in production, which writes the last address of X-Forwarded-For; earlier ones may be made up.
ALLAUTH_TRUSTED_PROXY_COUNT: int = env.int("TRUSTED_PROXY_COUNT", default=0 if IS_LOCAL else 1)
MFA_ADAPTER = "users.adapters.MFAAdapter"
MFA_SUPPORTED_TYPES = ["webauthn", "totp", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_FORMS = {
    "authenticate": "users.forms.CodeForm",
    "reauthenticate": "users.forms.ReauthenticateByCodeForm",
    "activate_totp": "users.forms.ActivateAppForm",
    "add_webauthn": "users.forms.AddPasskeyForm",
    "edit_webauthn": "users.forms.RenamePasskeyForm",
}
MFA_TOTP_ISSUER = "GPU Bourse"
# Operators decide nothing, and providers' bank accounts change, only with a second step besides the password.
SECOND_FACTOR_REQUIRED: bool = env.bool("SECOND_FACTOR_REQUIRED", default=not IS_LOCAL)

# Who runs the site and sells the hours: the imprint names what is missing. The demo's operator is made up.
OPERATOR_NAME: str = env.str("OPERATOR_NAME", default="Sample Bourse B.V. (sample)" if IS_LOCAL else "")
OPERATOR_ADDRESS: str = env.str("OPERATOR_ADDRESS", default="Sample Street 1, 0000 XX Sample Town" if IS_LOCAL else "")
OPERATOR_EMAIL: str = env.str("OPERATOR_EMAIL", default="operator@example.com" if IS_LOCAL else "")
SELLER_COUNTRY: str = env.str("SELLER_COUNTRY", default="NL" if IS_LOCAL else "")
SELLER_VAT_ID: str = env.str("SELLER_VAT_ID", default="NL000000000B00" if IS_LOCAL else "")

# --- Tax: where we may charge consumers their state's tax, when tax falls due, and who answers about VAT numbers -
B2C_COUNTRIES: list[str] = env.list("B2C_COUNTRIES", default=sorted(MEMBER_STATES))
TAX_POINT = "consumption"  # tax is taken when hours are used, not when a wallet is topped up
VAT_REGISTER: str = env.str("VAT_REGISTER", default="sample" if IS_LOCAL else "vies")
VIES_TIMEOUT_SECONDS: float = env.float("VIES_TIMEOUT_SECONDS", default=8.0)

# --- Mail: SMTP by its address; the demo writes files and shows them, the tests keep a list ------------------
_MAIL_DOMAIN = (ALLOWED_HOSTS or ["localhost"])[0].lstrip(".")
DEFAULT_FROM_EMAIL: str = env.str("FROM_EMAIL", default=f"GPU Bourse <noreply@{_MAIL_DOMAIN}>")
EMAIL_TIMEOUT = 10
if IS_DEMO:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = addresses.home() / "mail"
elif not IS_TEST:
    globals().update(env.email_url("EMAIL_URL"))

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

# --- Webhooks of customers go to public https addresses only. To try one on one's own machine, loopback can be let
# through, by http too; in production nothing lets it through.
WEBHOOKS_ALLOW_LOOPBACK: bool = IS_LOCAL and env.bool("WEBHOOKS_ALLOW_LOOPBACK", default=False)

# --- Payments: Stripe by its key; without one they are off, and in the demo the repository's own test gateway -
STRIPE_SECRET_KEY: str = env.str("STRIPE_SECRET_KEY", default="")
# Several while one is replaced: a message signed with any of them is believed.
STRIPE_WEBHOOK_SECRETS: list[str] = [secret.strip() for secret in env.list("STRIPE_WEBHOOK_SECRETS", default=[])]
STRIPE_TIMEOUT_SECONDS: float = env.float("STRIPE_TIMEOUT_SECONDS", default=10.0)
STRIPE_RETRIES = 0 if IS_TEST else 1
FAKE_STRIPE_URL = FAKE_STRIPE_KEY = ""
if IS_DEMO and not STRIPE_SECRET_KEY and (_fake := addresses.fake_stripe()) is not None:
    FAKE_STRIPE_URL, FAKE_STRIPE_KEY, STRIPE_WEBHOOK_SECRETS = _fake.url, _fake.api_key, [_fake.webhook_secret]
if _fault := fault_of_keys(STRIPE_SECRET_KEY, STRIPE_WEBHOOK_SECRETS, is_local=IS_LOCAL or DEBUG):
    raise ImproperlyConfigured(_fault)
# Where the payment page lies: the form that starts a top-up is answered with a redirect to it.
CHECKOUT_ORIGINS: list[str] = [FAKE_STRIPE_URL] if FAKE_STRIPE_URL else []
if STRIPE_SECRET_KEY:
    CHECKOUT_ORIGINS = [env.str("STRIPE_CHECKOUT_ORIGIN", default="https://checkout.stripe.com")]
# How much may be paid in, in whole units; all wallets of an organisation count together, one unit of each currency as
# one. A line: from this age in days and this many clean payments on, the most in 24 hours and in 7 days. A clean
# payment is a week old or more and was not disputed. The demo's money is not real, so its limits are wide.
TOP_UP_MINIMUM = 10
TOP_UPS_PER_HOUR = 1000 if IS_DEMO else 5
TOP_UP_TIERS = (
    [(0, 0, 100_000, 500_000)]
    if IS_DEMO
    else [(0, 0, 250, 500), (7, 1, 1_000, 2_500), (30, 3, 5_000, 15_000), (90, 5, 25_000, 75_000)]
)

# --- Security ----------------------------------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'", *CHECKOUT_ORIGINS],
        "frame-ancestors": ["'none'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
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
    # A cookie with this prefix can neither come from another host of the domain nor be sent without TLS.
    SESSION_COOKIE_NAME = "__Host-session"
    CSRF_COOKIE_NAME = "__Host-csrf"

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
_ERROR_STATUSES = ["400", "404", "405", "406", "412", "413", "415", "429", "500"]
_ERROR_STATUSES_WITH_A_KEY = ["401", "402", "403", "409", "422", "503"]  # which of them a call has: users.api.view
DRF_STANDARDIZED_ERRORS = {
    "EXCEPTION_HANDLER_CLASS": "common.problems.ProblemHandler",
    "EXCEPTION_FORMATTER_CLASS": "common.problems.ProblemFormatter",
    "ALLOWED_ERROR_STATUS_CODES": _ERROR_STATUSES,
    "ERROR_SCHEMAS": dict.fromkeys(
        [*_ERROR_STATUSES, *_ERROR_STATUSES_WITH_A_KEY], "common.problems.ProblemSerializer"
    ),
}
# Requests a minute (`users.api.throttling`): of one key, of all keys of an organisation, and of an address for calls
# that need no key but work. The tests send more than anyone may, and set their own.
QUOTAS_PER_MINUTE = (
    dict.fromkeys(("key", "organisation", "address"), 1_000_000)
    if IS_TEST
    else {"key": 600, "organisation": 1200, "address": 600}
)
SPECTACULAR_SETTINGS = {
    "TITLE": "GPU Bourse API",
    "VERSION": "1",
    "DESCRIPTION": (
        "GPUs, what they cost, and where. Money is a string with its unit in the field's name; figures are numbers; "
        "null means that nobody published or told it. Times are RFC 3339 in UTC. Lists come in pages: follow `next`. "
        "Public answers carry `ETag` and `Last-Modified`; ask again with them and get 304 while nothing has changed. "
        "Errors are problem documents (`application/problem+json`) that name the field at fault. "
        "Calls about an organisation need one of its keys, made at `/keys/`; `RateLimit` says how many requests are "
        "left, a 429 says in `Retry-After` when to come back."
    ),
    "SERVE_INCLUDE_SCHEMA": False,
    "ENUM_NAME_OVERRIDES": {
        "PriceKind": ["exchange", "on_demand", "list"],
        "PageKind": ["vendor", "second"],
        "WalletCurrency": ["EUR", "USD", "GBP"],
        "WebhookState": ["waiting", "delivered", "given_up"],
        "RentalState": ["pending", "provisioning", "running", "ending", "ended", "failed", "interrupted"],
        "RentalHourState": ["running", "waiting", "settled", "reversed", "unbilled"],
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
PRICE_ALERTS_PER_ORGANISATION: int = env.int("PRICE_ALERTS_PER_ORGANISATION", default=50)  # open ones
# Keys of price sources by the name of their setting; blank = none. A source that needs one is not asked without it.
SOURCE_KEYS: dict[str, str] = {
    name: env.str(name, default="")
    for name in (
        "DIGITALOCEAN_API_KEY",
        "LAMBDA_API_KEY",
        "PRIMEINTELLECT_API_KEY",
        "RUNPOD_API_KEY",
        "SHADEFORM_API_KEY",
        "TENSORDOCK_API_KEY",
        "VAST_API_KEY",
    )
}

# --- The exchange ------------------------------------------------------------------------------------------
PROVIDER_FEE_PERCENT = Decimal(env.str("PROVIDER_FEE_PERCENT", default="10"))
FX_MARGIN = Decimal(env.str("FX_MARGIN", default="0"))  # a share: 0.005 makes our rate half a per cent dearer
# The demo ships rates of one day and says so beside each conversion; elsewhere a rate ages (None: never).
FX_MAX_AGE_DAYS: int | None = None if IS_DEMO else env.int("FX_MAX_AGE_DAYS", default=5)

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
        "stripe": {"level": "WARNING"},
    },
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
}
