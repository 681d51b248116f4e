"""Tax details, answers of the register of VAT numbers, and decisions that only grow."""

import django.contrib.postgres.constraints
import django.contrib.postgres.fields
import django.contrib.postgres.fields.ranges
import django.db.models.deletion
from django.db import migrations, models

# A decision begins and ends with a full hour. Only its end may change: it is set, or brought forward, never put off.
ONLY_GROWS = """
ALTER TABLE billing_taxdecision ADD CONSTRAINT tax_decision_full_hours CHECK (
    mod(extract(epoch FROM valid_from), 3600) = 0 AND mod(extract(epoch FROM valid_to), 3600) = 0);

CREATE OR REPLACE FUNCTION billing_end_tax_decision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_jsonb(NEW) - 'valid_to' IS DISTINCT FROM to_jsonb(OLD) - 'valid_to'
       OR NEW.valid_to IS NULL OR NEW.valid_to > OLD.valid_to THEN
        RAISE EXCEPTION 'tax decision %: only its end may come sooner', OLD.id USING ERRCODE = 'LB003';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER tax_decisions_end BEFORE UPDATE ON billing_taxdecision
    FOR EACH ROW EXECUTE FUNCTION billing_end_tax_decision();
CREATE TRIGGER tax_decisions_stay BEFORE DELETE OR TRUNCATE ON billing_taxdecision
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change();
CREATE TRIGGER vat_checks_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_vatcheck
    FOR EACH STATEMENT EXECUTE FUNCTION billing_refuse_change();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0003_topups'),
        ('users', '0003_organisations_and_keys'),
    ]

    operations = [
        migrations.CreateModel(
            name='VatCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('vat_id', models.CharField(max_length=16)),
                ('register', models.CharField(choices=[('vies', 'VIES'), ('sample', 'sample answer, not VIES')], max_length=6)),
                ('outcome', models.CharField(choices=[('valid', 'valid'), ('invalid', 'not valid'), ('unknown', 'no answer')], max_length=7)),
                ('fault', models.CharField(blank=True, help_text='Why there is no answer', max_length=100)),
                ('name', models.CharField(blank=True, max_length=300)),
                ('address', models.CharField(blank=True, max_length=500)),
                ('name_match', models.CharField(choices=[('same', 'same name'), ('differs', 'another name'), ('not_told', 'not told')], default='not_told', help_text="The register's own verdict; where it tells the name, names are compared when the tax is decided", max_length=8)),
                ('consultation_number', models.CharField(blank=True, help_text='Without one the proof is weak', max_length=60)),
                ('asked_at', models.DateTimeField()),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='vat_checks', to='users.organisation')),
            ],
        ),
        migrations.CreateModel(
            name='TaxDetails',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('vat_id', models.CharField(blank=True, max_length=16)),
                ('next_check_at', models.DateTimeField(blank=True, null=True)),
                ('unanswered_checks', models.PositiveSmallIntegerField(default=0, help_text='In a row')),
                ('area_ruling', models.CharField(blank=True, choices=[('', 'not ruled'), ('mainland', 'as the mainland'), ('outside', 'outside the Union')], default='', max_length=8)),
                ('organisation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='tax_details', to='users.organisation')),
                ('last_answer', models.ForeignKey(blank=True, help_text="The register's last yes or no about this number", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.vatcheck')),
            ],
            options={
                'verbose_name_plural': 'tax details',
            },
        ),
        migrations.CreateModel(
            name='TaxDecision',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('valid_from', models.DateTimeField()),
                ('valid_to', models.DateTimeField(blank=True, null=True)),
                ('treatment', models.CharField(choices=[('domestic', 'domestic VAT'), ('reverse_charge', 'reverse charge'), ('consumer_state', 'VAT of your country'), ('outside_scope', 'outside EU VAT'), ('review', 'waits for a person'), ('blocked', 'not for sale there')], max_length=14)),
                ('rate_percent', models.DecimalField(blank=True, decimal_places=2, max_digits=4, null=True)),
                ('country_of_tax', models.CharField(blank=True, max_length=2)),
                ('en16931_code', models.CharField(blank=True, max_length=2)),
                ('legal_text_key', models.CharField(blank=True, max_length=20)),
                ('reasons', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=24), size=None)),
                ('seller_country', models.CharField(max_length=2)),
                ('buyer_type', models.CharField(max_length=8)),
                ('buyer_country', models.CharField(max_length=2)),
                ('buyer_postcode', models.CharField(blank=True, max_length=20)),
                ('vat_id', models.CharField(blank=True, max_length=16)),
                ('register_number', models.CharField(blank=True, max_length=40)),
                ('decided_at', models.DateTimeField()),
                ('organisation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tax_decisions', to='users.organisation')),
                ('vat_check', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.vatcheck')),
            ],
        ),
        migrations.AddIndex(
            model_name='vatcheck',
            index=models.Index(fields=['organisation', '-asked_at'], name='vat_check_by_organisation'),
        ),
        migrations.AddIndex(
            model_name='taxdetails',
            index=models.Index(condition=models.Q(('next_check_at__isnull', False)), fields=['next_check_at'], name='vat_check_due'),
        ),
        migrations.AddConstraint(
            model_name='taxdecision',
            constraint=django.contrib.postgres.constraints.ExclusionConstraint(expressions=[(models.Func(models.F('organisation'), models.F('organisation'), models.Value('[]'), function='int8range'), '&&'), (models.Func(models.F('valid_from'), models.F('valid_to'), django.contrib.postgres.fields.ranges.RangeBoundary(), function='tstzrange', output_field=django.contrib.postgres.fields.ranges.DateTimeRangeField()), '&&')], name='one_tax_decision_at_a_time'),
        ),
        migrations.AddConstraint(
            model_name='taxdecision',
            constraint=models.UniqueConstraint(condition=models.Q(('valid_to__isnull', True)), fields=('organisation',), name='one_open_tax_decision'),
        ),
        migrations.AddConstraint(
            model_name='taxdecision',
            constraint=models.CheckConstraint(condition=models.Q(('valid_to__isnull', True), ('valid_to__gte', models.F('valid_from')), _connector='OR'), name='tax_decision_period'),
        ),
        migrations.AddConstraint(
            model_name='taxdecision',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('en16931_code', ''), ('rate_percent__isnull', True), ('treatment__in', ['review', 'blocked'])), models.Q(('rate_percent__isnull', False), models.Q(models.Q(('en16931_code', 'S'), ('rate_percent__gt', 0), ('treatment__in', ['domestic', 'consumer_state'])), models.Q(('en16931_code', 'AE'), ('rate_percent', 0), ('treatment', 'reverse_charge')), models.Q(('en16931_code', 'O'), ('rate_percent', 0), ('treatment', 'outside_scope')), _connector='OR')), _connector='OR'), name='tax_rate_fits_treatment'),
        ),
        migrations.RunSQL(ONLY_GROWS, reverse_sql=migrations.RunSQL.noop),
    ]
