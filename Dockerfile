# One image for web, worker and beat; which one it is, the command says. State lives in PostgreSQL only.
FROM python:3.11-slim-bookworm

ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 BOURSE_ENV=production DJANGO_SETTINGS_MODULE=config.settings
WORKDIR /app

COPY requirements.lock ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock

COPY . .
# Compiled, collected and compressed here, once; the key is for this step only and signs nothing.
RUN python -m config.translations \
    && SECRET_KEY=build-only DATABASE_URL=postgres://build/build REDIS_URL=redis://build EMAIL_URL=dummymail:// python manage.py collectstatic --no-input \
    && useradd --system --no-create-home bourse
USER bourse

EXPOSE 8000
CMD ["gunicorn", "config.wsgi", "--bind=0.0.0.0:8000", "--worker-class=gthread", "--workers=4", "--threads=4", "--no-control-socket"]
