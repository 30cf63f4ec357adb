import { type Kysely, sql } from 'kysely'
import { FAILURE_CAUSE_COLUMNS, hasRouteColumns, SUM_KINDS, USAGE_SUMS_KEY } from '../../sum-kinds.ts'
import { UNSUMMED_TABLES, USAGE_SUMS } from './create-schema.ts'
import { type ColumnTypes, createTables } from './table.ts'

/** Columns of each histogram before this step, without their number, by the column that replaces them. */
const REPLACED = { total_latencies: 'total_', first_latencies: 'first_' } as const
const BUCKETS = 60
const NAMES = Object.keys(REPLACED) as (keyof typeof REPLACED)[]

const columnsOf = (name: keyof typeof REPLACED): string[] =>
  Array.from({ length: BUCKETS }, (_, bucket) => `${REPLACED[name]}${bucket}`)

/** SQL for the text of a histogram (`serializeHistogram`) from the columns before this step. */
const textOf = (name: keyof typeof REPLACED): string =>
  columnsOf(name)
    .map((column, bucket) => `case ${column} when 0 then '' else '${bucket}:' || ${column} || ' ' end`)
    .join(' || ')

const OF_ROUTES = `kind in (${SUM_KINDS.filter(hasRouteColumns)
  .map(({ kind }) => kind)
  .join(', ')})`

/**
 * Converts the histograms in sums of usage to one column each, only in sums without users and keys; causes of
 * failures as well are only in these from now on. Does nothing if `createSchema` has just created the tables.
 */
export async function joinHistograms(db: Kysely<unknown>, types: ColumnTypes): Promise<void> {
  const tables = await db.introspection.getTables()
  const columns = tables.find(({ name }) => name === USAGE_SUMS.name)?.columns.map(({ name }) => name) ?? []
  if (!columns.includes(`${REPLACED.total_latencies}0`)) return
  if (types.isShared) return convertInPlace(db)
  await addNotes(
    db,
    columns.filter((name) => !USAGE_SUMS_KEY.some((part) => part === name)),
  )
  await sql`alter table usage_sums rename to former_sums`.execute(db)
  await sql`drop table unsummed_calls`.execute(db)
  await createTables(db, [USAGE_SUMS, ...UNSUMMED_TABLES], types)
  const names = Object.keys(USAGE_SUMS.columns).filter(
    (name) => columns.includes(name) || NAMES.some((one) => one === name),
  )
  await sql
    .raw(
      `insert into usage_sums (${names.join(', ')}) select ${names.map(convertedColumn).join(', ')} from former_sums`,
    )
    .execute(db)
  await sql`drop table former_sums`.execute(db)
}

function convertedColumn(name: string): string {
  const histogram = NAMES.find((one) => one === name)
  if (histogram) return `case when ${OF_ROUTES} then ${textOf(histogram)} else '' end`
  return FAILURE_CAUSE_COLUMNS.includes(name) ? `case when ${OF_ROUTES} then ${name} else 0 end` : name
}

/** A row of a note: the half hour with the dimensions, and what is added to each column of sums. */
type NotedRow = readonly [key: readonly (string | number)[], sums: readonly number[]]

/** Adds the amounts in notes to the sums: before this step, a row of `unsummed_calls` was a list of them. */
async function addNotes(db: Kysely<unknown>, sums: readonly string[]): Promise<void> {
  const { rows } = await sql<{ sums: string }>`select sums from unsummed_calls`.execute(db)
  const key = USAGE_SUMS_KEY.join(', ')
  const changes = sums.map((name) => `${name} = usage_sums.${name} + excluded.${name}`).join(', ')
  for (const note of rows)
    for (const [[slot, ...dimensions], amounts] of JSON.parse(note.sums) as readonly NotedRow[])
      for (const { kind, unit, by } of SUM_KINDS) {
        const start = unit === 'slot' ? Number(slot) : Math.floor(Number(slot) / 48)
        const values = USAGE_SUMS_KEY.slice(2).map((name, index) =>
          by.has(name as never) ? dimensions[index] : index < 2 ? 0 : '',
        )
        await sql`
          insert into usage_sums (${sql.raw(key)}, ${sql.raw(sums.join(', '))})
          values (${sql.join([kind, start, ...values])}, ${sql.raw(amounts.join(', '))})
          on conflict (${sql.raw(key)}) do update set ${sql.raw(changes)}`.execute(db)
      }
}

async function convertInPlace(db: Kysely<unknown>): Promise<void> {
  const run = (statement: string): Promise<unknown> => sql.raw(statement).execute(db)
  await run(
    `alter table usage_sums ${NAMES.map((name) => `add column ${name} text not null default ''`).join(', ')}`,
  )
  await run(
    `update usage_sums set ${NAMES.map((name) => `${name} = ${textOf(name)}`).join(', ')} where ${OF_ROUTES}`,
  )
  const causes = FAILURE_CAUSE_COLUMNS
  await run(
    `update usage_sums set ${causes.map((name) => `${name} = 0`).join(', ')}
     where not ${OF_ROUTES} and (${causes.map((name) => `${name} <> 0`).join(' or ')})`,
  )
  await run(
    `alter table usage_sums ${NAMES.flatMap(columnsOf)
      .map((column) => `drop column ${column}`)
      .join(', ')}`,
  )
}
