/**
 * A reservation of quota on an API key and its user while a call runs. No upstream may be called without one.
 * Only the ledger creates holds.
 */
export interface Hold {
  readonly id: string
  readonly isSettled: boolean
}
