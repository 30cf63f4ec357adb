import { describe, expect, test } from 'vitest'
import { scanObject } from '../json/json-scan.ts'
import { EMBEDDINGS_LIMITS, EMBEDDINGS_PROMPT_RULES, readEmbeddingsRequest } from './request.ts'
import { promptTextOf } from '../prompt-text.ts'

const promptText = (body: Buffer) => promptTextOf(body, EMBEDDINGS_PROMPT_RULES, '')
const bytesOf = (fields: object): Buffer => Buffer.from(JSON.stringify({ model: 'm', ...fields }))
const read = (fields: object) => readEmbeddingsRequest(scanObject(bytesOf(fields), EMBEDDINGS_LIMITS))

describe('an embeddings request', () => {
  test.each([
    ['a text', 'hi', { text: 'hi', extraTokens: 0 }],
    ['texts', ['a', 'b'], { text: 'a\nb', extraTokens: 0 }],
    ['token ids', [1, 2, 3000], { text: '', extraTokens: 3 }],
    ['lists of token ids', [[1, 2], [3]], { text: '', extraTokens: 3 }],
    ['texts and token ids', ['a', [3, 4]], { text: 'a', extraTokens: 2 }],
    ['objects', [{ text: 'a' }], { text: '{"text":"a"}', extraTokens: 0 }],
  ])('an embeddings request may have %s', (_, input, counted) => {
    expect(read({ input }).model).toBe('m')
    expect(promptText(bytesOf({ input }))).toMatchObject(counted)
    expect(read({ input }).promptBound).toBeGreaterThanOrEqual(counted.extraTokens)
  })

  test('an embeddings request accepts 2,048 inputs, and 300,000 token ids', () => {
    expect(read({ input: Array.from({ length: 2048 }, () => 'a') }).promptBound).toBeLessThan(30_000)
    const lists = Array.from({ length: 2000 }, () => Array.from({ length: 150 }, () => 7))
    expect(promptText(bytesOf({ input: lists }))).toMatchObject({ text: '', extraTokens: 300_000 })
    expect(read({ input: Array.from({ length: 8192 }, (_, id) => id) }).promptBound).toBeGreaterThan(8191)
  })

  test.each([
    ['nothing', undefined, "'input' is required."],
    ['null', null, "'input' is required."],
    [
      'an empty text',
      '',
      "'input': expected a non-empty string, token ids, or a non-empty array of these, got an empty string.",
    ],
    ['an empty list', [], 'got an empty array.'],
    ['an empty text among others', ['a', ''], "'input[1]': expected a non-empty string"],
    [
      'an empty list of token ids',
      [[1], []],
      "'input[1]': expected a non-empty string or token ids, got an empty array.",
    ],
    [
      '3,000 texts',
      Array.from({ length: 3000 }, () => 'a'),
      "'input': expected at most 2048 inputs, got 3000.",
    ],
    ['a number', 7, 'got a number.'],
    ['a fraction of a token', [1, 2.5], "'input[1]': expected the id of a token, got another number."],
    ['a negative token', [[-1]], "'input[0][0]': expected the id of a token"],
    ['texts in a list of token ids', [[1, 'a']], "'input[0][1]': expected the id of a token, got a string."],
    [
      'numbers among texts',
      ['secret text', 1],
      "'input[1]': expected a non-empty string or token ids, got a number.",
    ],
    ['true', true, 'got true.'],
  ])('an embeddings request refuses %s', (_, input, message) => {
    let refusal = ''
    try {
      read({ input })
    } catch (error) {
      refusal = String(error)
    }
    expect(refusal).toContain(message)
    expect(refusal).not.toContain('secret')
  })

  test.each([
    [{}, 'numbers'],
    [{ encoding_format: null }, 'numbers'],
    [{ encoding_format: 'float' }, 'numbers'],
    [{ encoding_format: 'base64' }, 'base64'],
    [{ encoding_format: 'int8' }, undefined],
    [{ encoding_format: 'base64', output_dtype: 'int8' }, undefined],
    [{ encoding_format: 'base64', output_dtype: 'float' }, 'base64'],
  ])('an embeddings request determines the form of the vectors: %j', (fields, form) => {
    expect(read({ input: 'a', ...fields }).form).toBe(form)
  })

  test.each([{ dimensions: 0 }, { dimensions: 'many' }, { encoding_format: 7 }])(
    'an embeddings request with %j is refused',
    (fields) => {
      expect(() => read({ input: 'a', ...fields })).toThrow(/Invalid/)
    },
  )

  test('an embeddings request without a model is refused', () => {
    expect(() => readEmbeddingsRequest(scanObject(Buffer.from('{"input":"a"}')))).toThrow(
      "'model' is required",
    )
  })
})
