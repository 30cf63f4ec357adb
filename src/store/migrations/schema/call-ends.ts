import { type Kysely, sql } from 'kysely'
import type { Database } from '../../row-types.ts'
import type { ReportProgress } from '../steps.ts'
import { whileBuildingIndexes } from './build-indexes.ts'

/**
 * Adds the index that finds calls by their ends, which may be days after the times in their ids. PostgreSQL attaches the
 * indexes that `indexPartitions` has built, and builds one on each partition that was made since.
 */
export async function indexCallEnds(db: Kysely<unknown>): Promise<void> {
  await sql`create index if not exists usage_log_by_end on usage_log (ended_ms)`.execute(db)
}

/**
 * Builds the index on each partition of a shared log, while calls are logged and read. An index that an earlier run left
 * invalid, because it was killed, is dropped first: it would make that of the whole log invalid.
 */
export async function indexPartitions(db: Kysely<Database>, report: ReportProgress): Promise<void> {
  await whileBuildingIndexes(db, report, async (session) => {
    for (;;) {
      const partitions = await indexedPartitions(session)
      const left = partitions.filter(({ is_indexed: isIndexed, invalid }) => !isIndexed || invalid)
      const [next] = left
      if (!next) return
      const place = `${partitions.length - left.length + 1} of ${partitions.length}`
      report(`building the index of ${next.name} by the ends of calls (${place})`)
      for (const index of next.invalid ?? [])
        await sql`drop index concurrently ${sql.raw(index)}`.execute(session)
      if (!next.is_indexed)
        await sql`create index concurrently on ${sql.raw(next.name)} (ended_ms)`.execute(session)
    }
  })
}

/** A partition of the usage log; names as SQL. */
interface IndexedPartition {
  readonly name: string
  readonly is_indexed: boolean
  /** Indexes that were not completed; null if there are none. */
  readonly invalid: readonly string[] | null
}

async function indexedPartitions(session: Kysely<Database>): Promise<readonly IndexedPartition[]> {
  const { rows } = await sql<IndexedPartition>`
    select inhrelid::regclass::text as name, coalesce(bool_or(indisvalid), false) as is_indexed,
      array_agg(indexrelid::regclass::text) filter (where not indisvalid) as invalid
    from pg_inherits
    join pg_attribute on attrelid = inhrelid and attname = 'ended_ms'
    left join pg_index on indrelid = inhrelid and indkey::text = attnum::text and indpred is null
    where inhparent = 'usage_log'::regclass
    group by inhrelid order by name`.execute(session)
  return rows
}
