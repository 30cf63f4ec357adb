import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/**
 * Partitions the usage log of a shared database by range of its id, which sorts by time. The existing table
 * becomes the default partition without copying; its rows move when their partitions are made.
 *
 * Ids use the collation "C", because an update of another collation would change the bounds. The foreign keys
 * to users and tokens, whose rows are never removed, are dropped: with them, dropping a partition would lock
 * these tables.
 */
export function usagePartitions({ isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      if (!isShared) return
      await sql`
        alter table usage_log rename to usage_log_default;
        alter index usage_log_pkey rename to usage_log_default_pkey;
        alter index usage_log_by_user rename to usage_log_default_by_user;
        alter table usage_log_default
          drop constraint usage_log_user_id_fkey,
          drop constraint usage_log_token_id_fkey,
          alter column id type text collate "C";
        create table usage_log (like usage_log_default) partition by range (id);
        alter table usage_log add primary key (id);
        create index usage_log_by_user on usage_log (user_id, ended_ms);
        alter table usage_log attach partition usage_log_default default`.execute(db)
      await copyGrants(db)
    },
  }
}

// Copies grants of other roles on the log to the new table.
async function copyGrants(db: Kysely<unknown>): Promise<void> {
  await sql`
    do $$
    declare given record;
    begin
      for given in
        select grantee, privilege_type from information_schema.role_table_grants
        where table_schema = current_schema() and table_name = 'usage_log_default' and grantee <> current_user
      loop
        execute format('grant %s on usage_log to %I', given.privilege_type, given.grantee);
      end loop;
    end $$`.execute(db)
}
