import { sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { changesWithOperatorTerms } from './bank/changes.ts'
import type { ColumnTypes } from './column-types.ts'

/**
 * Adds the terms of tokens that operators gave. Nobody knows who gave those that exist: they are their
 * holders', until an operator gives them again.
 */
export function operatorTerms({ isShared }: ColumnTypes): Migration {
  return {
    async up(db) {
      await sql`alter table tokens add column operator_terms text not null default ''`.execute(db)
      if (!isShared) return
      const { rows } = await sql<{ name: string }>`select current_schema() as name`.execute(db)
      for (const statement of changesWithOperatorTerms(rows[0]?.name ?? 'public'))
        await sql.raw(statement).execute(db)
    },
  }
}
