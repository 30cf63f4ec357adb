import { expect, test } from 'vitest'
import { anthropic } from './anthropic.ts'
import type { BatchConnection } from './connection.ts'
import type { BatchToMake } from './provider-batches.ts'

/** Looks for a batch of two requests in a list with one batch that has these fields. */
function found(fields: object): Promise<string | undefined> {
  const listed = { id: 'msgbatch_1', created_at: new Date().toISOString(), ...fields }
  async function* pages(): AsyncGenerator<unknown> {
    yield { data: [listed], has_more: false }
  }
  const batch = { lines: 2, intentMs: Date.now(), isOfOther: () => false, isOwnLine: () => false }
  return anthropic.find({ pages } as unknown as BatchConnection, batch as unknown as BatchToMake)
}

test.each([
  ['has as many requests', 2],
  ['has requests that are not counted yet', 0],
])('a batch of Anthropic that runs and %s may be ours', async (_, processing) => {
  const finding = found({ processing_status: 'in_progress', request_counts: { processing } })
  await expect(finding).rejects.toThrow('may be ours')
})

test.each([
  ['has another number of requests', 'in_progress', 3],
  ['has ended without requests', 'ended', 0],
])('a batch of Anthropic that %s is not ours', async (_, status, processing) => {
  expect(await found({ processing_status: status, request_counts: { processing } })).toBeUndefined()
})
