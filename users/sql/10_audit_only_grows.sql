-- The record of decisions only grows: no row of it is changed or taken away, whoever asks.

CREATE OR REPLACE FUNCTION users_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% only grows: no %', TG_TABLE_NAME, TG_OP USING ERRCODE = 'UA001';
END $$;

CREATE OR REPLACE TRIGGER audit_records_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON users_auditrecord
    FOR EACH STATEMENT EXECUTE FUNCTION users_refuse_change();
