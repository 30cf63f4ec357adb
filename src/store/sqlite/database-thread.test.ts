import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { deriveSecrets } from '../secrets.ts'
import { unpackBatch } from './packed-batch.ts'
import type { ThreadOptions, MessageToThread } from './messages.ts'
import { DatabaseThread } from './database-thread.ts'

let folder: string
let thread: DatabaseThread
const posted = vi.spyOn(Worker.prototype, 'postMessage')

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-thread-'))
  thread = new DatabaseThread(
    { role: 'writer', path: join(folder, 'sluice.db'), secrets: deriveSecrets('x'.repeat(32)) },
    () => {},
  )
  await thread.ready
  posted.mockClear()
})

afterEach(async () => {
  await thread.close()
  rmSync(folder, { recursive: true, force: true })
})

/** The number of operations in each batch that was posted so far. */
function batches(): number[] {
  return posted.mock.calls.flatMap(([message]) => {
    const order = message as ThreadOptions | MessageToThread
    return 'kind' in order && order.kind === 'batch' ? [unpackBatch(order.operations).length] : []
  })
}

const operations = (count: number): Promise<unknown>[] =>
  Array.from({ length: count }, () => thread.run('countUsers', undefined))
const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}

test('database operations of one turn of the event loop are sent to the database thread in one batch', async () => {
  await Promise.all(operations(5))
  await Promise.all(operations(1))
  expect(batches()).toEqual([5, 1])
})

test('a batch of database operations waits a few turns of the event loop until it is as large as the last one', async () => {
  // On a busy machine a turn may take so long that nothing waits for it.
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  onTestFinished(() => clock.mockRestore())
  await Promise.all(operations(20))
  const first = operations(7)
  await turns(3)
  const rest = operations(13)
  await Promise.all([...first, ...rest])
  expect(batches()).toEqual([20, 20])
  const alone = operations(1)
  await turns(9)
  expect(batches()).toEqual([20, 20, 1])
  await Promise.all(alone)
})

test('a batch of database operations is sent without waiting when turns of the event loop are long', async () => {
  await Promise.all(operations(20))
  const first = operations(1)
  for (let turn = 0; turn < 3; turn++) {
    const untilMs = performance.now() + 6
    while (performance.now() < untilMs);
    await turns(1)
  }
  await Promise.all([...first, ...operations(1)])
  expect(batches()).toEqual([20, 1, 1])
})

test('after a batch with few database operations the next batch is sent without waiting', async () => {
  await Promise.all(operations(7))
  const first = operations(1)
  await turns(3)
  await Promise.all([...first, ...operations(6)])
  expect(batches()).toEqual([7, 1, 6])
})
