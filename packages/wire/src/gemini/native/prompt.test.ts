import { expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { promptTextOf } from '../../prompt-text.ts'
import { GEMINI_PROMPT_RULES, mediaOfContents } from './prompt.ts'

const promptText = (body: Buffer) => promptTextOf(body, GEMINI_PROMPT_RULES, '')

test("a Gemini prompt's tokens are counted from its texts, calls, responses and tools, plus a fixed number for each medium", () => {
  const body = {
    systemInstruction: { parts: [{ text: 'Be good.' }] },
    contents: [
      { parts: [{ text: 'Look.' }, { inlineData: { mimeType: 'image/png', data: 'AAAA' } }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: { a: 1 } } }] },
      { role: 'user', parts: [{ functionResponse: { name: 'f', response: { output: 'Done.' } } }] },
    ],
    tools: [{ functionDeclarations: [{ name: 'f' }] }],
  }
  const { text, extraTokens } = promptText(Buffer.from(JSON.stringify(body)))
  for (const piece of ['Be good.', 'Look.', 'f', '{"a":1}', 'Done.', 'functionDeclarations'])
    expect(text).toContain(piece)
  expect(text).not.toContain('AAAA')
  expect(extraTokens).toBeGreaterThan(1000)
})

test.each(['inlineData', 'inline_data', 'fileData', 'file_data', String.raw`inlineD\u0061ta`])(
  'media of a Gemini prompt are recognized under the name %s',
  (name) => {
    const bodyOf = (part: string): string => `{"contents":[{"parts":[${part}]}]}`
    const seen = scanObject(Buffer.from(bodyOf(`{"${name}":{"mimeType":"image/png"}}`)))
    const unseen = scanObject(Buffer.from(bodyOf(`{"text":"${name} and file"}`)))
    expect(mediaOfContents(unseen, 'm')).toEqual({ isAny: false, excess: 0 })
    expect(mediaOfContents(seen, 'm').isAny).toBe(true)
    expect(mediaOfContents(seen, 'm').excess).toBeGreaterThan(5_000)
  },
)

test('a picture in a thought of the model adds to the upper bound of a Gemini prompt as any other', () => {
  const part = { thought: true, inlineData: { mimeType: 'image/png', data: '' } }
  const request = { contents: [{ role: 'model', parts: [part] }] }
  const scan = scanObject(Buffer.from(JSON.stringify(request)))
  // The two quotes of its data are within the 10,000.
  expect(mediaOfContents(scan, 'm')).toEqual({ isAny: true, excess: 10_000 - 2 })
})
