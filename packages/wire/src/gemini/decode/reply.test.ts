import { expect, test } from 'vitest'
import { PartialArgs } from './reply.ts'

const assembled = (...pieces: readonly unknown[]): string => {
  const args = new PartialArgs()
  for (const piece of pieces) args.add([piece])
  return args.toString()
}

test('streamed Gemini arguments are assembled by their JSON paths, in the order of arrival', () => {
  expect(
    assembled(
      { jsonPath: '$.b.list[0].name', stringValue: 'a' },
      { jsonPath: '$.b.list[0].name', stringValue: '"b' },
      { jsonPath: '$.b.list[1]', numberValue: 0.5 },
      { jsonPath: `$['odd key']["2"]`, boolValue: false },
      { jsonPath: '$.2', nullValue: null },
      { jsonPath: '$.1', stringValue: '' },
    ),
  ).toBe('{"b":{"list":[{"name":"a\\"b"},0.5]},"odd key":{"2":false},"2":null,"1":""}')
})

test.each([undefined, 1, {}, { jsonPath: 'a', stringValue: 'x' }, { jsonPath: '$' }, { jsonPath: '$.a[' }])(
  'a piece of streamed Gemini arguments without a valid path is ignored: %j',
  (piece) => {
    expect(assembled(piece)).toBe('{}')
  },
)

test('of two pieces of streamed Gemini arguments whose JSON paths contradict each other, the later one is kept', () => {
  expect(assembled({ jsonPath: '$.a', numberValue: 1 }, { jsonPath: '$.a.b', boolValue: true })).toBe(
    '{"a":{"b":true}}',
  )
})
