"""Applications of providers, how their review went, and tokens that let servers enrol."""

from pathlib import Path

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):

    dependencies = [
        ('marketplace', '0004_rental_alerts'),
        ('users', '0004_audit_only_grows'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='EnrolToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_sha256', models.CharField(max_length=64, unique=True)),
                ('issued_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(blank=True, null=True)),
                ('replaced_at', models.DateTimeField(blank=True, null=True)),
                ('issued_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='enrol_tokens', to='marketplace.server')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('replaced_at__isnull', True), ('used_at__isnull', True)), fields=('server',), name='one_open_enrol_token'), models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('issued_at'))), name='enrol_token_ends_later')],
            },
        ),
        migrations.CreateModel(
            name='ProviderApplication',
            fields=[
                ('provider', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='application', serialize=False, to='marketplace.provider')),
                ('company_name', models.CharField(blank=True, max_length=120)),
                ('register_number', models.CharField(blank=True, max_length=40)),
                ('vat_id', models.CharField(blank=True, max_length=16)),
                ('address', models.CharField(blank=True, max_length=200)),
                ('postcode', models.CharField(blank=True, max_length=20)),
                ('city', models.CharField(blank=True, max_length=100)),
                ('contact_name', models.CharField(blank=True, max_length=120)),
                ('contact_email', models.EmailField(blank=True, max_length=254)),
                ('contact_phone', models.CharField(blank=True, max_length=30)),
                ('account_holder', models.CharField(blank=True, max_length=120)),
                ('iban_encrypted', models.TextField(blank=True)),
                ('iban_hint', models.CharField(blank=True, help_text='Country and last four digits', max_length=8)),
                ('terms_version', models.CharField(blank=True, max_length=20)),
                ('self_billing_version', models.CharField(blank=True, max_length=20)),
                ('agreed_at', models.DateTimeField(blank=True, null=True)),
                ('changed_at', models.DateTimeField()),
                ('agreed_by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('self_billing_version', ''), ('terms_version', '')), ('agreed_at__isnull', False), _connector='OR'), name='agreement_has_a_date'), models.CheckConstraint(condition=models.Q(models.Q(('iban_encrypted', ''), ('iban_hint', '')), models.Q(models.Q(('iban_encrypted', ''), _negated=True), models.Q(('iban_hint', ''), _negated=True)), _connector='OR'), name='bank_account_has_its_hint')],
            },
        ),
        migrations.CreateModel(
            name='ProviderReview',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('step', models.CharField(choices=[('submitted', 'sent for review'), ('taken_back', 'taken back'), ('approved', 'approved'), ('rejected', 'sent back'), ('suspended', 'suspended'), ('reopened', 'opened again'), ('closed', 'closed')], max_length=10)),
                ('reason', models.TextField(blank=True)),
                ('at', models.DateTimeField()),
                ('by', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('provider', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reviews', to='marketplace.provider')),
            ],
            options={
                'indexes': [models.Index(fields=['provider', 'at'], name='reviews_of_provider')],
                'constraints': [models.CheckConstraint(condition=models.Q(('step__in', ['submitted', 'taken_back', 'approved']), models.Q(('reason', ''), _negated=True), _connector='OR'), name='review_against_has_a_reason')],
            },
        ),
        migrations.RunSQL((SQL / "50_reviews.sql").read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
