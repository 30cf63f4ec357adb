import type { DroppedFields } from '../codec.ts'
import type { EndUser } from '../conversation.ts'
import { asRecord } from '../json/record.ts'
import { reportDropped } from './dropped-fields.ts'

/** Value of `service_tier` for the provider's standard capacity. The default is `auto`. */
export const STANDARD_TIER = 'standard_only'

/** Maximum length of a user's identifier in other protocols. Messages clients send longer ones. */
const MAX_LENGTH = 64

/**
 * Reads the user's id from `metadata`, as an object to spread into a conversation. Other members of
 * `metadata` are dropped and reported, because other protocols cannot express them.
 */
export function decodeEndUser(metadata: unknown, dropped: DroppedFields): { endUser?: EndUser } {
  const { user_id: id, ...others } = asRecord(metadata) ?? {}
  const isKept = typeof id === 'string' && id !== '' && Array.from(id).length <= MAX_LENGTH
  if (Object.keys(others).length > 0 || (!isKept && id !== undefined && id !== null))
    reportDropped(dropped, 'metadata')
  return isKept ? { endUser: { id, field: 'metadata' } } : {}
}
