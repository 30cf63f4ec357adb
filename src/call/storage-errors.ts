import { GatewayError } from '../errors.ts'
import { StoreUnavailable } from '../store/store-unavailable.ts'

const RETRY_AFTER = { retryAfter: 5 }

/** Message for clients while the database refuses writes. */
export const STORAGE_UNAVAILABLE = 'the gateway cannot write its database at the moment; try again'

/** The error for clients while the database is unavailable or refuses writes. */
export function databaseUnavailableError(error: unknown): GatewayError {
  const isAway = error instanceof StoreUnavailable && !error.refusesWrites
  const sentence = 'the gateway cannot reach its database at the moment; try again'
  return isAway
    ? new GatewayError('overloaded', sentence, RETRY_AFTER)
    : new GatewayError('storage_unavailable', STORAGE_UNAVAILABLE, RETRY_AFTER)
}
