import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { EmbeddingsReply } from './reply.ts'

type Form = 'numbers' | 'base64' | undefined

const readPieces = (pieces: readonly Buffer[], form: Form) => {
  const reply = new EmbeddingsReply(form)
  const written = pieces.map((piece) => reply.push(piece))
  const text = Buffer.concat([...written, reply.end()]).toString()
  return { ...reply.facts, text }
}

const read = (text: string, form?: Form) => readPieces([Buffer.from(text)], form)

const answer = (first: string, second: string, usage = '{"prompt_tokens":5,"total_tokens":5}'): string =>
  `{"object":"list","data":[{"object":"embedding","index":0,"embedding":${first}},
  { "embedding" : ${second}, "index": 1 ,"object": "embedding"}],"model":"m €","usage":${usage}}`

const base64 = (numbers: readonly number[]): string =>
  `"${Buffer.from(new Float32Array(numbers).buffer).toString('base64')}"`

const HALF = base64([0.5, -2])

describe('a response of embeddings', () => {
  test.each([
    ['numbers', '[1,2]', '[ 3 , 4e-1 ]'],
    ['base64', HALF, HALF],
    [undefined, HALF, '[1]'],
  ] as const)(
    'an embeddings response in the requested form passes byte for byte: %s',
    (form, first, second) => {
      const text = answer(first, second)
      expect(read(text, form)).toMatchObject({ valid: true, text, usage: { input: 5, output: 0 } })
    },
  )

  test('embedding vectors are converted to the requested encoding, and nothing else in the response changes', () => {
    expect(read(answer(HALF, '[1]'), 'numbers').text).toBe(answer('[0.5,-2]', '[1]'))
    expect(read(answer('[0.5, -2]', HALF), 'base64').text).toBe(answer(HALF, HALF))
  })

  test('embedding vectors that are converted from base64 to numbers and back are unchanged', () => {
    const vector = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { minLength: 1 })
    fc.assert(
      fc.property(vector, vector, (one, other) => {
        const text = answer(base64(one), base64(other))
        expect(read(read(text, 'numbers').text, 'base64').text).toBe(text)
      }),
    )
  })

  test('an embeddings response gives the same vectors and usage however the network divides its bytes', () => {
    const bytes = Buffer.from(answer(HALF, '[ 1 , 2e-7 ]'))
    for (const form of ['numbers', 'base64', undefined] as const) {
      const { text, ...facts } = read(bytes.toString(), form)
      for (let size = 1; size < bytes.length; size++) {
        const pieces: Buffer[] = []
        for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
        const { text: other, ...same } = readPieces(pieces, form)
        expect(other).toBe(text)
        expect({ ...same, text: '' }).toEqual({ ...facts, text: '' })
      }
    }
  })

  const vectorOf = (numbers: number): string =>
    base64(Array.from({ length: numbers }, (_, index) => (index % 97) / 64))

  test.each([49_000, 50_000])(
    'embedding vectors in base64 are converted up to 256 KiB, and left unchanged beyond: %i numbers',
    (numbers) => {
      const vector = vectorOf(numbers)
      const bytes = Buffer.from(answer(vector, '[1]'))
      const halves = [bytes.subarray(0, 150_000), bytes.subarray(150_000)]
      for (const pieces of [[bytes], halves])
        expect(!readPieces(pieces, 'numbers').text.includes(vector)).toBe(vector.length <= 262_144)
    },
  )

  test.each([261_000, 263_000])(
    'embedding vectors of numbers are converted up to 512 KiB, and left unchanged beyond: %i numbers',
    (numbers) => {
      const vector = `[${'1,'.repeat(numbers - 1)}1]`
      const isConverted = !read(answer(vector, '[1]'), 'base64').text.includes(vector)
      expect(isConverted).toBe(vector.length <= 524_288)
    },
  )

  test('an embeddings response with the word embedding inside a text is read correctly', () => {
    const text = answer('[1]', '[2]').replace('m €', String.raw`\"embedding\": [`)
    expect(read(text, 'base64')).toMatchObject({ valid: true })
    expect(read(text, 'base64').text).toContain(String.raw`\"embedding\": [`)
  })

  test('an embeddings response in which an embedding is a list of vectors is forwarded unchanged', () => {
    const text = '{"data":[{"embedding":[[1,2],[3,4]]}],"usage":{"total_tokens":3}}'
    expect(read(text)).toMatchObject({ valid: true, text, usage: { input: 3 } })
  })

  test.each([
    ['of total tokens alone', '{"total_tokens":7}', 7],
    ['with output', '{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}', 7],
    ['of nothing', '{"prompt_tokens":0,"total_tokens":0}', undefined],
    ['that is null', 'null', undefined],
  ])('the prompt tokens of an embeddings response are read from a usage %s', (_, usage, input) => {
    expect(read(answer('[1]', '[2]', usage)).usage?.input).toBe(input)
  })

  test.each([
    ['{"data":[{"embedding":[1]}],"meta":{"billed_units":{"input_tokens":4}}}', 4],
    ['{"data":[{"embedding":[1]}],"prompt_eval_count":6}', 6],
  ])(
    "the usage of an embeddings response is read from Cohere's and Ollama's fields if it has no usage member: %s",
    (text, input) => {
      expect(read(text).usage?.input).toBe(input)
    },
  )

  test.each([
    '',
    'x',
    '[]',
    '{}',
    '{"data":[]}',
    '{"data":[{}]}',
    '{"data":[1]}',
    '{"data":[{"embedding":[1',
    '{"data":[{"embedding":"AAAA',
  ])('an invalid embeddings response is recognized: %s', (text) => {
    expect(read(text)).toMatchObject({ valid: false, error: undefined, text })
  })

  test('an embeddings response whose body is an error is recognized as an error, and not as a valid response', () => {
    expect(read('{"error":{"message":"no"}}')).toMatchObject({
      valid: false,
      error: { data: expect.any(String) },
    })
  })
})

test('reading an embeddings response never throws, whatever bytes it has', () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom('numbers', 'base64', undefined), (text, form) => {
      const wrapped = `{"data":[{"embedding":${text}}]}`
      for (const one of [text, wrapped]) expect(typeof read(one, form).valid).toBe('boolean')
    }),
  )
})
