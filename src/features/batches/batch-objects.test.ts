import { expect, test } from 'vitest'
import type { Batch } from './batch.ts'
import { messageBatchObject } from './batch-objects.ts'

const ENDED_MS = Date.UTC(2026, 0, 2)
const KEEP_MS = 3_600_000
const URL = 'https://gateway.example/results'

const batch: Batch = {
  id: 'msgbatch_1',
  userId: 2,
  tokenId: 1,
  createdMs: Date.UTC(2026, 0, 1),
  cancelMs: undefined,
  facts: {
    path: '/v1/messages',
    inputFile: null,
    metadata: null,
    headers: {},
    groups: [],
    keepMs: KEEP_MS,
    total: 2,
    counts: { completed: 2, failed: 0, expired: 0, cancelled: 0 },
    usage: { input: 0, cached: 0, output: 0, reasoning: 0 },
    model: null,
    endedMs: ENDED_MS,
    outputFile: null,
    errorFile: null,
  },
}

// docs/batches.md: Message batches
test('a message batch is archived, and names no results, once they were kept for files.keep', () => {
  const at = (nowMs: number): object => messageBatchObject(batch, URL, nowMs)
  expect(at(ENDED_MS + KEEP_MS - 1)).toMatchObject({ archived_at: null, results_url: URL })
  expect(at(ENDED_MS + KEEP_MS)).toMatchObject({
    processing_status: 'ended',
    request_counts: { succeeded: 2 },
    archived_at: '2026-01-02T01:00:00.000Z',
    results_url: null,
  })
})
