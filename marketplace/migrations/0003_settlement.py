"""Settled hours, and the statement that settles them."""

from pathlib import Path

import django.db.models.deletion
import django.db.models.expressions
from django.db import migrations, models

SQL = Path(__file__).resolve().parent.parent / "sql" / "40_settlement.sql"


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0007_settle'),
        ('catalog', '0004_source_day'),
        ('marketplace', '0002_book'),
        ('users', '0004_audit_only_grows'),
    ]

    operations = [
        migrations.CreateModel(
            name='Settlement',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('hour', models.DateTimeField(help_text='Start of the UTC hour')),
                ('billed_seconds', models.PositiveSmallIntegerField()),
                ('gap_seconds', models.PositiveSmallIntegerField()),
                ('fx_rate', models.DecimalField(decimal_places=10, help_text='Of the first held hour it touches', max_digits=20)),
                ('held_tax_rate_percent', models.DecimalField(decimal_places=2, max_digits=5)),
                ('next_seconds', models.PositiveSmallIntegerField(default=0, help_text='Billed seconds of the second held hour')),
                ('next_fx_rate', models.DecimalField(blank=True, decimal_places=10, max_digits=20, null=True)),
                ('next_held_tax_rate_percent', models.DecimalField(blank=True, decimal_places=2, max_digits=5, null=True)),
                ('tax_rate_percent', models.DecimalField(blank=True, decimal_places=2, max_digits=5, null=True)),
                ('net_micros', models.BigIntegerField()),
                ('tax_micros', models.BigIntegerField()),
                ('gross_micros', models.BigIntegerField()),
                ('usd_net_micros', models.BigIntegerField()),
                ('payable_micros', models.BigIntegerField(help_text='What the provider earned, in USD')),
                ('fee_micros', models.BigIntegerField(help_text='Ours, in USD')),
                ('settled_at', models.DateTimeField()),
                ('reversed_at', models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.AddField(
            model_name='rental',
            name='fully_settled_at',
            field=models.DateTimeField(blank=True, help_text='It is over and has its last line', null=True),
        ),
        migrations.AddField(
            model_name='rental',
            name='unbilled_from',
            field=models.DateTimeField(blank=True, help_text='Interrupted: the start of the UTC hour of the last beat, billed no more', null=True),
        ),
        migrations.AddIndex(
            model_name='rental',
            index=models.Index(condition=models.Q(('fully_settled_at__isnull', True), ('ready_at__isnull', False)), fields=['id'], name='rentals_to_settle'),
        ),
        migrations.AddField(
            model_name='settlement',
            name='entry',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.journalentry'),
        ),
        migrations.AddField(
            model_name='settlement',
            name='provider_entry',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.journalentry'),
        ),
        migrations.AddField(
            model_name='settlement',
            name='provider_reversal_entry',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.journalentry'),
        ),
        migrations.AddField(
            model_name='settlement',
            name='rental',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='settlements', to='marketplace.rental'),
        ),
        migrations.AddField(
            model_name='settlement',
            name='reversal_entry',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.journalentry'),
        ),
        migrations.AddField(
            model_name='settlement',
            name='tax_decision',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.taxdecision'),
        ),
        migrations.AddConstraint(
            model_name='settlement',
            constraint=models.UniqueConstraint(fields=('rental', 'hour'), name='settled_once'),
        ),
        migrations.AddConstraint(
            model_name='settlement',
            constraint=models.CheckConstraint(condition=models.Q(('gross_micros', django.db.models.expressions.CombinedExpression(models.F('net_micros'), '+', models.F('tax_micros'))), ('usd_net_micros', django.db.models.expressions.CombinedExpression(models.F('payable_micros'), '+', models.F('fee_micros'))), ('billed_seconds__lte', django.db.models.expressions.CombinedExpression(models.Value(3600), '-', models.F('gap_seconds'))), ('next_seconds__lte', models.F('billed_seconds'))), name='line_adds_up'),
        ),
        migrations.AddConstraint(
            model_name='settlement',
            constraint=models.CheckConstraint(condition=models.Q(('gross_micros__gte', 0), ('payable_micros__gte', 0), models.Q(models.Q(('entry__isnull', True), ('gross_micros', 0)), models.Q(('entry__isnull', False), ('gross_micros__gt', 0)), _connector='OR'), models.Q(models.Q(('payable_micros', 0), ('provider_entry__isnull', True)), models.Q(('payable_micros__gt', 0), ('provider_entry__isnull', False)), _connector='OR')), name='line_has_its_entries'),
        ),
        # Room in each page for the next version of a rental: it is written anew with each hour.
        migrations.RunSQL(
            "ALTER TABLE marketplace_rental SET (fillfactor = 50)", reverse_sql=migrations.RunSQL.noop
        ),
        migrations.RunSQL(SQL.read_text(), reverse_sql=migrations.RunSQL.noop),
    ]
