import { EventsToJsonArray } from '@sluice/wire/gemini'
import { scanObject } from '@sluice/wire/json/json-scan'
import { requestTexts } from '@sluice/wire/text-finder'
import { describe, expect, test } from 'vitest'
import { redactFrame } from '../../src/upstreams/redact.ts'
import type { Shape } from '../../packages/wire/src/shape/define-shape.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { Target } from '../fuzz/target.ts'
import { TARGETS } from '../fuzz/targets.ts'
import { REQUEST_SHAPES } from '../fixtures/shapes.ts'
import { channelOf } from '../samples/channel.ts'

type Measured = Pick<Target, 'repeated' | 'run'>

const CHANNEL = channelOf({ keys: ['upstream-key-1'], base_url: 'https://inner.example/v1' })
/** Parsers that no fuzz target runs. */
const OTHERS: Readonly<Record<string, Measured>> = {
  'errors of an upstream': {
    repeated: [
      ['{"error":{"message":"', 'eyJ-', '"}}'],
      ['{"error":{"message":"', 'eyJa.', '"}}'],
      ['{"error":{"message":"', 'sk-a ', '"}}'],
      ['{"error":{"message":"', '\\"eyJ-', '"}}'],
    ],
    run: (input) => redactFrame(input, CHANNEL),
  },
  'texts for guards': {
    repeated: [
      ['{"messages":[{"role":"user","content":"hi"', ',"a":"b c"', '}]}'],
      [
        '{"messages":[{"role":"user","content":[{"type":"file","file":{"a":"b"',
        ',"file_data":"QUJD"',
        '}}]}]}',
      ],
    ],
    run: (input) => requestTexts(scanObject(input), REQUEST_SHAPES['chat'] as Shape),
  },
  'streams as JSON arrays': {
    repeated: [
      ['', '\r', ''],
      ['', '\n', ''],
      ['', 'data: 1\r', ''],
    ],
    run: (input) => new EventsToJsonArray().push(input),
  },
}

/** The minimum time of a few runs, for an input that repeats a piece up to a size. */
async function millisecondsFor(
  target: Measured,
  [before, piece, after]: Target['repeated'][number],
  size: number,
): Promise<number> {
  const input = Buffer.from(before + piece.repeat(Math.ceil(size / piece.length)) + after)
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 5; i++) {
    const began = performance.now()
    try {
      await target.run(input, randomFrom(1))
    } catch {
      // A refusal, whatever its reason.
    }
    least = Math.min(least, performance.now() - began)
  }
  return least
}

/** The pieces whose repetition takes more than linear time. */
async function steepOf(measured: Measured): Promise<string[]> {
  const steep: string[] = []
  for (const grown of measured.repeated) {
    const few = await millisecondsFor(measured, grown, 30_000)
    const many = await millisecondsFor(measured, grown, 480_000)
    // A sixteenfold input may take sixteen times as long; quadratic time would be 256 times.
    if (many > 100 && many > few * 80)
      steep.push(`${JSON.stringify(grown[1].slice(0, 80))}: ${few} and ${many} ms`)
  }
  return steep
}

describe('time for longer inputs', () => {
  test.each(Object.entries(TARGETS))(
    "the time to process an input grows only in proportion to the input's length: %s",
    { timeout: 300_000 },
    async (_, loadTarget) => {
      const target = await loadTarget()
      const seeds = target.seeds.map((seed) => seed.toString())
      const alone = [...new Set([...target.tokens, ...seeds])].map((piece) => ['', piece, ''] as const)
      expect(
        await steepOf({ run: target.run.bind(target), repeated: [...target.repeated, ...alone] }),
      ).toEqual([])
    },
  )

  test.each(Object.entries(OTHERS))(
    "the time to process an input grows only in proportion to the input's length, where no fuzz target reads it: %s",
    { timeout: 300_000 },
    async (_, measured) => expect(await steepOf(measured)).toEqual([]),
  )
})
