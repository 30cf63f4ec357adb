import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { closeJson, JsonOutline } from './json-outline.ts'
import { lawRuns } from '../../../../test/runner/tier.ts'

function outlineOf(text: string, size = 1_000, outline = new JsonOutline()): JsonOutline {
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += size) outline.push(bytes.subarray(at, at + size))
  return outline
}

const parsed = (text: string, size?: number): unknown => JSON.parse(outlineOf(text, size).text ?? '')

/** A text of short words, without a long run of base64 characters. */
const words = (bytes: number): string => 'some "words" \\ of é text '.repeat(Math.ceil(bytes / 26))

describe('the outline of a JSON text', () => {
  test('the outline of a JSON text, which shortens long values, equals the text if no value is long, however the text is divided', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), fc.integer({ min: 1, max: 9 }), (text, size) => {
        expect(outlineOf(text, size).text).toBe(text)
      }),
      { numRuns: lawRuns(1000) },
    )
  })

  test('the outline of a JSON text with an image of any size keeps the short values and the text before and after the image', () => {
    for (const size of [6_000_000, 40_000_000]) {
      const url = `data:image/png;base64,${'iVBORw0K'.repeat(size / 8)}==`
      const delta = {
        content: `Look: ![it](${url}) is it.`,
        images: [{ type: 'image_url', image_url: { url } }],
      }
      const choices = [{ index: 0, delta, finish_reason: 'stop' }]
      const outline = outlineOf(JSON.stringify({ id: 'a', choices, usage: { prompt_tokens: 9 } }), 65_536)
      expect(outline.length).toBeLessThan(5_000)
      const result = JSON.parse(outline.text ?? '')
      expect(result).toMatchObject({
        id: 'a',
        choices: [{ finish_reason: 'stop' }],
        usage: { prompt_tokens: 9 },
      })
      expect(result.choices[0].delta.content).toMatch(
        /^Look: !\[it\]\(data:image\/png;base64,[\w]+\) is it\.$/,
      )
    }
  })

  test('the outline of a JSON text omits an image whose slashes are escaped', () => {
    const outline = outlineOf(`{"url":"${'iVBORw0K\\/Z'.repeat(60_000)}","b":"\\/"}`)
    expect(outline.length).toBeLessThan(2_000)
    expect(JSON.parse(outline.text ?? '')).toMatchObject({ b: '/' })
  })

  test('the outline of a JSON text has the beginning of a very long string, without an incomplete escape at its end', () => {
    // The varying length of the first text moves the escape sequences across the limit.
    for (const escape of ['\\"', '\\u00e9', '\\\\', 'é']) {
      for (let shift = 0; shift < 7; shift++) {
        const content = 'x '.repeat(3) + 'y'.repeat(shift) + escape.repeat(200_000)
        const { a, b } = parsed(`{"a":"${content}","b":1}`) as { a: string; b: number }
        expect(b).toBe(1)
        expect(Buffer.byteLength(a)).toBeGreaterThan(80_000)
        expect(JSON.parse(`"${content}"`).startsWith(a.slice(0, -1))).toBe(true)
      }
    }
  })

  test('the outline of a JSON text omits deeply nested values if there are too many of them', () => {
    const top = Array.from({ length: 20 }, (_, i) => ({ token: `t${i}`, logprob: -1.5, bytes: [1, 2, 3] }))
    const content = Array.from({ length: 5_000 }, () => ({ token: 'a', logprob: -0.1, top_logprobs: top }))
    const choice = { index: 0, delta: { content: 'Hi.' }, logprobs: { content }, finish_reason: 'length' }
    const text = JSON.stringify({ choices: [choice], usage: { completion_tokens: 4_000 } })
    expect(text.length).toBeGreaterThan(4_000_000)
    const outline = outlineOf(text, 65_536)
    expect(outline.length).toBeLessThan(700_000)
    expect(JSON.parse(outline.text ?? '')).toMatchObject({
      choices: [{ delta: { content: 'Hi.' }, finish_reason: 'length' }],
      usage: { completion_tokens: 4_000 },
    })
  })

  test('the outline of a JSON text keeps keys and short values after it has reached its maximum of texts', () => {
    const texts = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`text${i}`, words(300_000)]))
    const result = parsed(JSON.stringify({ ...texts, usage: { prompt_tokens: 7 }, why: 'stop' }))
    expect(result).toMatchObject({ usage: { prompt_tokens: 7 }, why: 'stop' })
  })

  test('the outline of a JSON text keeps deeply nested values that are short, such as the details of a usage', () => {
    const texts = Object.fromEntries(Array.from({ length: 3 }, (_, i) => [`text${i}`, words(300_000)]))
    const usage = { input_tokens: 9, input_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 } }
    const response = { ...texts, output: [{ content: [{ text: 'a', annotations: [] }] }], usage }
    expect(parsed(JSON.stringify({ type: 'response.completed', response }))).toMatchObject({
      response: { usage },
    })
  })

  test('an outline that keeps no lists whole omits the end of those that are too long, and keeps the objects after them', () => {
    const words = Array.from({ length: 60_000 }, (_, i) => ({ word: 'a', start: i, end: i + 1 }))
    const usage = {
      details: { text: 10_000_000, audio: 10_000_000 },
      pad: 'x'.repeat(50),
      output: 7,
      total: 9,
    }
    const text = JSON.stringify({ text: 'Hi.', words, segments: words, usage }, null, 2)
    expect(outlineOf(text).text).toBeUndefined()
    const outline = outlineOf(text, 65_536, new JsonOutline(1))
    expect(outline.length).toBeLessThan(700_000)
    const { words: begun, segments, ...others } = JSON.parse(outline.text ?? '')
    expect(begun.slice(0, 1_000)).toEqual(words.slice(0, 1_000))
    expect(segments).toEqual(words.slice(0, 2))
    expect(others).toEqual({ text: 'Hi.', usage })
  })

  test('the outline of a JSON text is abandoned, and its memory released, if it has too many short and shallow values', () => {
    const outline = outlineOf(JSON.stringify(Array.from({ length: 400_000 }, (_, i) => i)))
    expect(outline.text).toBeUndefined()
    expect(outline.length).toBe(0)
  })
})

test.each([
  ['{"a":{"b":["x', '{"a":{"b":["x"]}}'],
  ['{"a":"x"', '{"a":"x"}'],
  ['{"a":', '{"a":null}'],
  ['{"a"', '{"a":null}'],
  ['{"a":1,', '{"a":1}'],
  ['{"a":"x\\', '{"a":"x"}'],
  ['{"a":"x\\u00', '{"a":"x"}'],
  ['{"a":"x\\n', '{"a":"x\\n"}'],
  ['{"a":[{},{"b":"}"', '{"a":[{},{"b":"}"}]}'],
])(
  'closeJson closes the open objects, arrays and strings of a truncated JSON text: %s',
  (beginning, closed) => {
    expect(closeJson(beginning)).toBe(closed)
  },
)

test('closeJson returns undefined for a text that no brackets can complete', () => {
  expect(closeJson('{"a":tru')).toBeUndefined()
})
