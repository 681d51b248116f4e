-- How a provider's review went only grows: no step of it is changed or taken away.
CREATE OR REPLACE TRIGGER reviews_only_grow BEFORE UPDATE OR DELETE OR TRUNCATE ON marketplace_providerreview
    FOR EACH STATEMENT EXECUTE FUNCTION users_refuse_change();
