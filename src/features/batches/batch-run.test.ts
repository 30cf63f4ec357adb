import { expect, test } from 'vitest'
import { accountOf } from '../../../test/ledger/calls.ts'
import { storeWithAccount } from '../../../test/stores/rows.ts'
import { factsOfBatchHold } from '../../accounts/ledger/batch-hold.ts'
import { Ledger } from '../../accounts/ledger/ledger.ts'
import { KeptStore } from '../../store/kept-store.ts'
import { BatchRun } from './batch-run.ts'
import { BatchStore } from './batch-store.ts'
import { type Batch, newBatchId, type BatchLine } from './batch.ts'

const DAY_MS = 86_400_000
const MEBIBYTE = 1_048_576

/** The work on a batch with these bodies of lines. */
async function runOf(bodies: Iterable<Buffer>): Promise<BatchRun> {
  const { store: rows, tokenId } = await storeWithAccount()
  const account = await accountOf(new Ledger(rows, 'run'), tokenId)
  const most = (): number => 1_024 * MEBIBYTE
  const kept = new KeptStore({ rows, maxBytes: { user: most, cache: most, files: most }, room: undefined })
  const store = new BatchStore(kept)
  const { id } = newBatchId('openai')
  // Ids have the time of the machine, which a moved clock does not move.
  const createdMs = Date.now()
  const named = { id, userId: account.user.id, createdMs }
  await store.storeInput(named, DAY_MS, linesOf(bodies))
  const batch = { ...named, tokenId, facts: {}, cancelMs: undefined } as unknown as Batch
  const hold = new Ledger(rows, 'run').admit(account, 0, factsOfBatchHold(id, createdMs))
  const prices = { models: new Map(), groups: new Map(), priceVersion: '', quotaPerUnit: 1 }
  return new BatchRun(store, batch, hold, new Set(), prices)
}

async function* linesOf(bodies: Iterable<Buffer>): AsyncGenerator<BatchLine, void, undefined> {
  let number = 0
  for (const body of bodies) {
    number += 1
    yield { number, customId: `l${number}`, amount: 0, body }
  }
}

/** Takes lines that all have to wait, until no further ones are taken; resolves to their number. */
async function linesThatWait(run: BatchRun): Promise<number> {
  let count = 0
  try {
    for (; run.mayTake; count += 1) {
      const line = await run.take()
      if (!line) break
      run.delay(line, 60_000, () => {})
    }
    return count
  } finally {
    run.dropDelayed()
    await run.close()
  }
}

test('while 100 lines of a batch wait to be tried again, no further ones are begun', async () => {
  const bodies = Array.from({ length: 150 }, () => Buffer.from('{}'))
  expect(await linesThatWait(await runOf(bodies))).toBe(100)
})
