/**
 * A reservation of quota on an API key and its user while a call runs. No upstream may be called without one.
 * Only the ledger creates holds.
 */
export interface Hold {
  readonly id: string
  readonly isSettled: boolean
}

/** Whether a hold is that of a batch; its id is that of the batch. */
export function isHoldOfBatch({ id }: Pick<Hold, 'id'>): boolean {
  return id.startsWith('batch_') || id.startsWith('msgbatch_')
}
