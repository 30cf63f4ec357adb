import type { Dropped } from '../codec.ts'
import type { EndUser } from '../conversation.ts'
import { asRecord } from '../json/record.ts'
import { reportDropped } from './dropped-fields.ts'

/** Value of `service_tier` for the provider's standard capacity; `auto` is the default. */
export const STANDARD_TIER = 'standard_only'

/**
 * Maximum length, in characters, of a user's id in the other dialects; clients of messages may send longer
 * ids.
 */
const MAX_LENGTH = 64

/**
 * Reads the user's id from `metadata`, as an object to spread into a conversation. Other dialects cannot
 * express anything else in it.
 */
export function decodeEndUser(metadata: unknown, dropped: Dropped): { endUser?: EndUser } {
  const { user_id: id, ...others } = asRecord(metadata) ?? {}
  const isKept = typeof id === 'string' && id !== '' && Array.from(id).length <= MAX_LENGTH
  if (Object.keys(others).length > 0 || (!isKept && id !== undefined && id !== null))
    reportDropped(dropped, 'metadata')
  return isKept ? { endUser: { id, field: 'metadata' } } : {}
}
