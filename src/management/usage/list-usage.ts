import type { UsageEntry } from '../../domain/records/usage.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { UsageCursor } from '../../store/operations/usage-log.ts'
import { offsetOf, type Page } from '../page.ts'
import type { ManagementParts } from '../parts.ts'
import { type Cell, csvLine } from './csv.ts'

/** A page of the usage log, newest first. `total` counts at most the newest 100,000 rows of the period. */
export async function listUsage<Shown>(
  { store }: Pick<ManagementParts, 'store'>,
  filter: UsageFilter | null,
  requested: Page,
  shown: (entry: UsageEntry) => Shown,
): Promise<{ page: number; page_size: number; total: number; items: Shown[] }> {
  const { page, pageSize } = requested
  if (!filter) return { page, page_size: pageSize, total: 0, items: [] }
  const { total, entries } = await store.read('listUsage', {
    filter,
    offset: offsetOf(requested),
    limit: pageSize,
  })
  return { page, page_size: pageSize, total, items: entries.map(shown) }
}

interface Batch {
  readonly entries: readonly UsageEntry[]
  readonly next: UsageCursor | null
}

/**
 * Number of rows scanned by one read of the store, small enough for memory and to let other reads run in
 * between.
 */
const BATCH_ROWS = 2_000

/**
 * The usage log as CSV, newest first, in pieces of whole lines. For a slow client at most one piece is
 * buffered.
 */
export async function* usageCsv<Shown extends Readonly<Record<string, Cell>>>(
  { store }: Pick<ManagementParts, 'store'>,
  filter: UsageFilter | null,
  columns: readonly (keyof Shown & string)[],
  shown: (entry: UsageEntry) => Shown,
): AsyncGenerator<string, void, undefined> {
  const header = csvLine(columns)
  if (!filter) return yield header
  let piece = header
  let after: UsageCursor | null = null
  do {
    const batch: Batch = await store.read('scanUsage', { filter, after, maxRows: BATCH_ROWS })
    for (const entry of batch.entries) {
      const row = shown(entry)
      piece += csvLine(columns.map((column) => row[column] ?? null))
    }
    if (piece !== '') yield piece
    piece = ''
    after = batch.next
  } while (after)
}
