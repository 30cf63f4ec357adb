import { expect, test } from 'vitest'
import { startSimulator } from '../../packages/simulator/src/start-simulator.ts'
import { batchesOf, simulateBatches } from '../fixtures/batch-provider.ts'
import { BatchClient, chatLine, linesIn } from '../fixtures/batches.ts'
import { startGateway } from '../fixtures/gateway.ts'
import { peakWhile, residentBytes } from '../fixtures/resident-memory.ts'

const LINES = 50_000
/** With it, a file has just less than the maximum of 209,715,200 bytes. */
const WORDS = 'x'.repeat(3_980)
const MAX_GROWTH_BYTES = 100_000_000
const QUOTA = 2_000_000_000_000
const ENDS: ReadonlySet<string> = new Set(['completed', 'expired', 'cancelled'])

const content = (lines: number): Buffer =>
  Buffer.concat(
    Array.from({ length: lines }, (_, at) => {
      const messages = [{ role: 'user', content: WORDS }]
      return Buffer.from(`${JSON.stringify(chatLine(`line-${at}`, 'm', { messages }))}\n`)
    }),
  )

test('with a batch of 200 MB, a gateway grows by at most 100 MB in each step', {
  timeout: 1_800_000,
}, async () => {
  const simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  const gateway = await startGateway({ env: { NODE_OPTIONS: '--import /tmp/mem.mjs' },
    config: {
      options: { batches: { poll: '200ms', poll_most: '1s' } },
      rate_limits: { relay: { requests: 0 } },
      ...batchesOf('ann', simulator.chatUrl, QUOTA),
    },
  })
  try {
    await simulateBatches(simulator.chatUrl, { behaviour: { running_ms: 5_000, shuffled: true } })
    const ann = new BatchClient(gateway.url, 'ann')
    // What every process grows by when it does something for the first time is not counted.
    await ann.ended((await ann.make(content(500), { metadata: {} })).id)
    const before = residentBytes(gateway.pid)
    const grown: Record<string, number> = {}
    const measured = async <Result>(step: string, work: Promise<Result>): Promise<Result> => {
      const { peak, result } = await peakWhile(gateway.pid, work)
      grown[step] = Math.round((peak - before) / 1e6)
      console.log(`${step}: ${Math.round(before / 1e6)} MB + ${grown[step]} MB`)
      return result
    }
    const file = content(LINES)
    expect(file.length).toBeGreaterThan(200_000_000)
    const input = await measured('upload', ann.upload(file))
    const submitted = await measured(
      'submission',
      ann.ask('/v1/batches', 'POST', {
        input_file_id: input,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      }),
    )
    expect(submitted.status, submitted.text).toBe(200)
    const { id } = submitted.json() as unknown as { id: string }
    const isOver = async (): Promise<boolean> => ENDS.has((await ann.batch(id)).status)
    await measured(
      'sending and results',
      expect.poll(isOver, { timeout: 1_500_000, interval: 1_000 }).toBe(true),
    )
    const ended = await ann.batch(id)
    expect(ended).toMatchObject({ status: 'completed', request_counts: { total: LINES, completed: LINES } })
    const results = await measured(
      'results, downloaded',
      ann.ask(`/v1/files/${ended.output_file_id}/content`),
    )
    expect(linesIn(results.text)).toHaveLength(LINES)
    const whole = await measured('input, downloaded', ann.ask(`/v1/files/${input}/content`))
    expect(whole.text.length).toBe(file.length)
    for (const [step, megabytes] of Object.entries(grown))
      expect(megabytes, step).toBeLessThanOrEqual(MAX_GROWTH_BYTES / 1e6)
  } finally {
    await gateway.discard()
    await simulator.close()
  }
})
