import { cacheWriteTokens, NO_USAGE, promptTokens, type Usage } from '@sluice/wire/usage'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { tokenCounts } from './gen-ai.ts'

const tokens = fc.nat({ max: 1_000_000 })

/** A usage whose parts fit into their wholes. */
const usages: fc.Arbitrary<Usage> = fc
  .record({
    text: tokens,
    audio: tokens,
    image: tokens,
    read: tokens,
    readAudio: tokens,
    write: tokens,
    out: tokens,
    outAudio: tokens,
    thought: tokens,
  })
  .map((one) => ({
    ...NO_USAGE,
    input: one.text + one.audio + one.image,
    audioInput: one.audio,
    imageInput: one.image,
    cacheRead: one.read + one.readAudio,
    audioCacheRead: one.readAudio,
    cacheWrite5m: one.write,
    cacheWrite1h: one.write,
    output: one.out + one.outAudio + one.thought,
    audioOutput: one.outAudio,
    reasoning: one.thought,
  }))

const sum = (counts: object): number =>
  Object.values(counts).reduce<number>((all, one) => all + Number(one), 0)

test('the tokens that telemetry reports by modality add up to the tokens that are charged', () => {
  fc.assert(
    fc.property(usages, fc.boolean(), (usage, mayHaveMedia) => {
      const counts = tokenCounts(usage, mayHaveMedia)
      expect(counts.input).toBe(promptTokens(usage))
      expect(sum(counts.inputBy)).toBe(counts.input)
      expect(sum(counts.outputBy)).toBe(usage.output)
      expect(sum(counts.cacheReadBy)).toBe(usage.cacheRead)
      expect(counts.cacheWrite).toBe(cacheWriteTokens(usage))
    }),
  )
})

test.each([
  ['text in a call without media', { input: 10 }, false, { text: 10 }],
  [
    'unknown in a call with media whose provider does not tell them apart',
    { input: 10 },
    true,
    { unknown: 10 },
  ],
  [
    'told apart by the provider',
    { input: 10, audioInput: 4, imageInput: 1 },
    true,
    { text: 5, audio: 4, image: 1 },
  ],
])(
  'the exported input tokens of a call are divided by modality: %s',
  (_, usage, mayHaveMedia, modalities) => {
    expect(tokenCounts({ ...NO_USAGE, ...usage }, mayHaveMedia).inputBy).toEqual(modalities)
  },
)
