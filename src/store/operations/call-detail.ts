import type { AttemptEntry, Particulars } from '../../domain/call-detail.ts'
import type { UsageEntry } from '../../domain/records/usage.ts'
import type { Db } from './operation.ts'
import { listUsage } from './list-usage.ts'

/** A settled call with all that its cost is explained by. */
export interface CallDetail {
  readonly entry: UsageEntry
  /** Undefined where no attempt was noted: the only one was answered. */
  readonly attempts: readonly AttemptEntry[] | undefined
  readonly particulars: Particulars
  /** Text of its `PriceSet`; undefined for the estimate for a lost node. */
  readonly priceSet: string | undefined
}

/** Reads a settled call, of one user where `userId` is given; null if there is none. */
export async function callDetail(
  db: Db,
  { id, userId }: { readonly id: string; readonly userId?: number | undefined },
): Promise<CallDetail | null> {
  const { entries } = await listUsage(db, { filter: { id }, offset: 0, limit: 1 })
  const [entry] = entries
  if (!entry || (userId !== undefined && entry.user_id !== userId)) return null
  const set = await db
    .selectFrom('price_sets')
    .select('content')
    .where('version', '=', entry.price_version)
    .where('model', '=', entry.model)
    .where('group_name', '=', entry.group)
    .executeTakeFirst()
  return {
    entry,
    attempts: entry.attempts === null ? undefined : (JSON.parse(entry.attempts) as AttemptEntry[]),
    particulars: entry.particulars === null ? {} : (JSON.parse(entry.particulars) as Particulars),
    priceSet: set?.content,
  }
}
