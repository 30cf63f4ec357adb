import { describe, expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { decodeRequest } from '../decode/request.ts'
import {
  checkCountRequest,
  textToCount,
  countBodyWithPrompt,
  countTokensBody,
  type GeminiRequest,
  hasOnlyTexts,
  readGeminiRequest,
} from './request.ts'

const read = (body: object): GeminiRequest =>
  readGeminiRequest(scanObject(Buffer.from(JSON.stringify(body))), 'm')
const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }]

describe('a Gemini request', () => {
  test('a Gemini request is read in either spelling of its fields', () => {
    for (const config of [
      { generationConfig: { maxOutputTokens: 5, candidateCount: 2 } },
      { generation_config: { max_output_tokens: 5, candidate_count: 2 } },
    ])
      expect(read({ contents, ...config })).toMatchObject({
        maxTokens: 5,
        candidateCount: 2,
      })
    expect(read({ contents, tools: [{ google_search: {} }, { functionDeclarations: [] }] })).toMatchObject({
      providerTools: { tools: [{ type: 'googleSearch' }] },
    })
    expect(read({ contents })).toMatchObject({ maxTokens: undefined, candidateCount: 1 })
  })

  test.each<[object, RegExp]>([
    [{}, /'contents' is required/],
    [{ contents: [] }, /'contents'.*at least one content/],
    [{ contents: 'Hi' }, /'contents'/],
    [{ contents: ['Hi'] }, /'contents\[0\]'/],
    [{ contents: [{ parts: ['Hi'] }] }, /'contents\[0\]\.parts\[0\]'/],
    [{ contents, generationConfig: [] }, /'generationConfig'/],
    [{ contents, generationConfig: { maxOutputTokens: 0 } }, /maxOutputTokens.*got 0/],
    [{ contents, generationConfig: { candidateCount: 9 } }, /candidateCount/],
    [{ contents, serviceTier: 1 }, /serviceTier/],
  ])('an invalid Gemini request is refused: %j', (body, message) => {
    expect(() => read(body)).toThrow(message)
  })

  test.each<[object, RegExp]>([
    [{ contents, systemInstruction: 'Be good.' }, /'systemInstruction'/],
    [{ contents, tool_config: [] }, /'tool_config'/],
    [{ contents, safetySettings: 1 }, /'safetySettings'/],
    [{ contents, cachedContent: 1 }, /'cachedContent': expected a string/],
    [{ contents, continuation_token: 1 }, /'continuation_token': expected a string/],
    [{ contents, generation_config: { temperature: 3 } }, /temperature.*got 3/],
    [{ contents, generationConfig: { topP: -1 } }, /topP.*got -1/],
    [{ contents, generationConfig: { top_k: 1001 } }, /topK.*got 1001/],
    [{ contents, generationConfig: { seed: 2 ** 31 } }, /seed/],
    [{ contents, generationConfig: { presencePenalty: 3 } }, /presencePenalty/],
    [{ contents, generationConfig: { frequencyPenalty: '1' } }, /frequencyPenalty/],
    [{ contents, generationConfig: { stopSequences: ['a', 1] } }, /stopSequences/],
  ])(
    'a Gemini request with a value outside the documented range is refused if it is converted, and accepted if it is native: %j',
    (body, message) => {
      const scan = scanObject(Buffer.from(JSON.stringify(body)))
      expect(() => readGeminiRequest(scan, 'm')).not.toThrow()
      expect(() => decodeRequest(scan, new Set())).toThrow(message)
    },
  )

  test('a Gemini request may have unknown fields, and null in optional fields', () => {
    expect(() =>
      read({ contents, secret: 1, generationConfig: { secret: 1, topK: null }, tools: null }),
    ).not.toThrow()
  })
})

describe('the upper bound of a Gemini prompt', () => {
  const bound = (...parts: readonly object[]): number => read({ contents: [{ parts }] }).promptBound

  test('the upper bound of a Gemini prompt counts an image by the tokens of an image, whatever its number of bytes', () => {
    const data = 'A'.repeat(400_000)
    expect(bound({ inlineData: { mimeType: 'image/png', data } })).toBeLessThan(11_000)
    expect(bound({ inline_data: { mime_type: 'image/png', data } })).toBeLessThan(11_000)
  })

  test('the upper bound of a Gemini prompt counts a file given by URI as a million tokens or more; cached content and a continued answer are recognized', () => {
    expect(bound({ fileData: { fileUri: 'https://youtu.be/x' } })).toBeGreaterThan(1_000_000)
    expect(read({ contents, cachedContent: 'cachedContents/x' }).namesPrompt).toBe(true)
    expect(read({ contents, cached_content: 'cachedContents/x' }).namesPrompt).toBe(true)
    expect(read({ contents, continuationToken: 'dG9rZW4=' }).namesPrompt).toBe(true)
    expect(read({ contents, continuation_token: 'dG9rZW4=' }).namesPrompt).toBe(true)
    expect(read({ contents }).namesPrompt).toBe(false)
  })

  test('the upper bound of a Gemini prompt of one word is below 200 tokens', () => {
    expect(bound({ text: 'Hi' })).toBeLessThan(200)
  })
})

const CONTENTS = '"contents":[{"parts":[{"text":"Hello there."}]}]'
const WHOLE = `{"generateContentRequest": {"model":"models/small","x":1.0,${CONTENTS},"systemInstruction":{"parts":[{"text":"Be good."}]}}}`
const scan = (text: string) => scanObject(Buffer.from(text))

describe('a request to count tokens', () => {
  test('a countTokens request of Gemini needs contents, or a whole request that has them', () => {
    expect(() => checkCountRequest(scan(`{${CONTENTS}}`))).not.toThrow()
    expect(() => checkCountRequest(scan(WHOLE))).not.toThrow()
    expect(() => checkCountRequest(scan('{}'))).toThrow("'contents' is required.")
    expect(() => checkCountRequest(scan('{"generateContentRequest":{}}'))).toThrow("'contents' is required.")
    expect(() => checkCountRequest(scan('{"generate_content_request":7}'))).toThrow('expected an object')
  })

  test('a countTokens request of Gemini is counted with its system instruction', () => {
    expect(textToCount(scan(`{${CONTENTS}}`)).text).toBe('Hello there.')
    expect(textToCount(scan(WHOLE)).text).toBe('x\n1.0\nBe good.\nHello there.')
  })

  test.each(['cachedContent', 'continuationToken'])(
    'a countTokens request of Gemini with a %s, whose content only the provider has, is not counted by the gateway',
    (field) => {
      expect(() => textToCount(scan(`{${CONTENTS},"${field}":"cachedContents/1"}`))).toThrow(field)
    },
  )

  test('a countTokens request of Gemini goes to the upstream unchanged, except for the model name', () => {
    expect(countTokensBody(scan(WHOLE), 'small').toString()).toBe(WHOLE)
    expect(countTokensBody(scan(WHOLE), 'models/small').toString()).toBe(WHOLE)
    expect(countTokensBody(scan(WHOLE), 'big-1').toString()).toBe(WHOLE.replace('small', 'big-1'))
    expect(countTokensBody(scan(`{${CONTENTS}}`), 'big-1').toString()).toBe(`{${CONTENTS}}`)
  })

  test("a countTokens request of Gemini gets a channel's system prompt inside a whole request, and for Vertex AI beside the contents", () => {
    const added = (text: string, isVertex: boolean): string =>
      countBodyWithPrompt(scan(text), 'small', 'Be brief.', isVertex).toString()
    const instruction = '"systemInstruction":{"parts":[{"text":"Be brief."}]}'
    expect(added(`{${CONTENTS}}`, false)).toBe(
      `{"generateContentRequest":{${CONTENTS},${instruction},"model":"models/small"}}`,
    )
    expect(added(`{${CONTENTS}}`, true)).toBe(`{${CONTENTS},${instruction}}`)
    for (const isVertex of [false, true])
      expect(added(WHOLE, isVertex)).toBe(
        WHOLE.replace('[{"text":"Be good', '[{"text":"Be brief."},{"text":"Be good'),
      )
  })
})

const plain = (contents: string): boolean => hasOnlyTexts(scanObject(Buffer.from(`{"contents":${contents}}`)))

test.each([
  '[]',
  '[{"parts":[]}]',
  '[{"parts":[{"text":"Hi"}]}]',
  '[{"role":"user","parts":[{"text":"Hi"},{"text":"inlineData"}]},{"parts":[{"text":"functionCall"}],"role":"model"}]',
])('the contents %s of a Gemini request are recognized as only texts', (contents) => {
  expect(plain(contents)).toBe(true)
})

test.each([
  '[{"parts":[{"text":"Hi"},{"inlineData":{}}]}]',
  '[{"parts":[{"text":"Hi"}]},{"parts":[{"functionCall":{"name":"f"}}]}]',
  '[{"parts":[{"text":"Hi","thoughtSignature":"c2ln"}]}]',
  '[{"parts":[{"text":"Hi","thought":true}]}]',
  String.raw`[{"parts":[{"inl\u0069neData":{}}]}]`,
  '[{"parts":["Hi"]}]',
  '[{"parts":[{}]}]',
  '[{"parts":{"text":"Hi"}}]',
  '[{"role":"user"}]',
  '["Hi"]',
  '{"parts":[{"text":"Hi"}]}',
  'null',
])('the contents %s of a Gemini request are not recognized as only texts', (contents) => {
  expect(plain(contents)).toBe(false)
})
