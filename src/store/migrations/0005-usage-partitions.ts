import { type Kysely, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import type { ColumnTypes } from './column-types.ts'

/**
 * Where the database is shared, the usage log becomes a table of partitions, by range of its id, which is the
 * order of time. What is there becomes the partition for everything that no other one is made for, in one
 * step and without copying; the rows move into their own when those are made.
 *
 * Ids are compared byte by byte: a language's order may change under a database, and bounds must not. The log
 * refers to users and tokens no longer, which are never removed: to drop a partition that does would keep
 * everybody from reading them.
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

// What others may do with the log, they may do with the table that now has its name.
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
