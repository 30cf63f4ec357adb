import type { Authenticated } from '../auth/account-authenticator.ts'
import type { StoreReads } from '../limits/store-reads.ts'
import { meteredStore } from '../management/metered-store.ts'
import type { AdministrationParts } from '../management/parts.ts'
import type { Response } from '../server/response.ts'

/**
 * The parts for one request of a user, whose store is read within the user's shares until the response is
 * written. Visitors read single rows.
 */
export function meteredParts(
  { management, reads }: { readonly management: AdministrationParts; readonly reads: StoreReads },
  response: Response,
  { user }: Partial<Authenticated>,
): AdministrationParts {
  if (!user) return management
  const reading = reads.of(user.id)
  response.onClosed(() => reading.end())
  // The response may have been aborted before its listener was set.
  if (response.isAborted) reading.end()
  return { ...management, store: meteredStore(management.store, reading) }
}
