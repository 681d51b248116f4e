"""Alerts about money that runs out, strikes, silences."""

from pathlib import Path

import django.db.models.deletion
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql"
NAMES = ("40_silence.sql",)


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0008_raise_hold'),
        ('marketplace', '0003_settlement'),
        ('users', '0004_audit_only_grows'),
    ]

    operations = [
        migrations.CreateModel(
            name='RunwayAlert',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('currency', models.CharField(max_length=3)),
                ('level_seconds', models.PositiveIntegerField(help_text='The level of runway that was crossed')),
                ('lasts_until', models.DateTimeField(help_text='When the first rental would stop, as seen then')),
                ('raised_at', models.DateTimeField()),
                ('cleared_at', models.DateTimeField(blank=True, null=True)),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='runway_alerts', to='users.organisation')),
                ('wallet', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.account')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('cleared_at__isnull', True)), fields=['organisation'], name='runway_alerts_open')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('cleared_at__isnull', True)), fields=('wallet', 'level_seconds'), name='one_open_runway_alert'), models.CheckConstraint(condition=models.Q(('cleared_at__isnull', True), ('cleared_at__gte', models.F('raised_at')), _connector='OR'), name='alert_clears_later')],
            },
        ),
        migrations.CreateModel(
            name='Strike',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(max_length=40)),
                ('struck_at', models.DateTimeField()),
                ('provider', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='strikes', to='marketplace.provider')),
                ('rental', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='strike', to='marketplace.rental')),
                ('server', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='strikes', to='marketplace.server')),
            ],
            options={
                'indexes': [models.Index(fields=['provider', '-struck_at'], name='strikes_of_provider')],
            },
        ),
        *(migrations.RunSQL((SQL / name).read_text(), reverse_sql=migrations.RunSQL.noop) for name in NAMES),
    ]
