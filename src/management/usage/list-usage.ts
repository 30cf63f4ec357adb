import type { UsageEntry } from '../../domain/records/usage.ts'
import type { UsageFilter } from '../../domain/usage-filter.ts'
import { offsetOf, type Page } from '../page.ts'
import type { ManagementParts } from '../parts.ts'

/** A page of the usage log, newest first. `total` counts the newest 100,000 rows of the period at most. */
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
