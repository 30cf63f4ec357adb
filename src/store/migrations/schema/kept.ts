import { type Kysely, sql } from 'kysely'
import { TABLES } from '../../tables.ts'
import { type ColumnTypes, createTables } from './table.ts'

const REPLACED = ['response_parts', 'kept_signatures', 'kept_answers', 'answer_parts', 'kept_sums']

/**
 * Creates the tables of what is kept, unless `createSchema` has just created them with all others. What builds before
 * 0.1.0 kept is removed: its rows are encrypted for the tables that are replaced.
 */
export async function createKept(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const present = new Set((await db.introspection.getTables()).map(({ name }) => name))
  if (present.has('kept')) return
  const run = (statement: string): Promise<unknown> => sql.raw(statement).execute(db)
  for (const name of REPLACED) await run(`drop table ${name}`)
  for (const name of ['stored_responses_by_end', 'stored_responses_by_age']) await run(`drop index ${name}`)
  await run('delete from stored_responses where content_cipher is not null')
  for (const name of ['content_cipher', 'kept_bytes'])
    await run(`alter table stored_responses drop column ${name}`)
  const on = TABLES.stored_responses.indexes.stored_responses_by_end
  await run(`create index stored_responses_by_end on stored_responses ${on}`)
  const created = (['kept', 'kept_parts', 'kept_sums'] as const).map((name) => ({ name, ...TABLES[name] }))
  await createTables(db, created, types)
}
