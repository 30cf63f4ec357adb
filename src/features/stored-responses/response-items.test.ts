import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lawRuns } from '../../../test/runner/tier.ts'
import { readItemQuery } from '@sluice/wire/responses'
import { type ItemSource, storedItemPage } from './response-items.ts'

/** A text in parts of this many characters, and the list of the parts that were read. */
function source(text: string, length = 7, of: ItemSource['of'] = 'array') {
  const read: number[] = []
  const part = (index: number): Promise<{ text: string; isLast: boolean }> => {
    read.push(index)
    const start = index * length
    return Promise.resolve({ text: text.slice(start, start + length), isLast: start + length >= text.length })
  }
  return { of, part, read }
}

async function pageOf(sources: readonly ItemSource[], query: string): Promise<string> {
  let text = ''
  for await (const piece of storedItemPage(sources, readItemQuery(new URLSearchParams(query)))) text += piece
  return text
}

const listOf = (...ids: string[]): string =>
  `[${ids.map((id) => `{"id":"${id}","big":9007199254740993}`).join(',')}]`

describe('a page of items', () => {
  const page = async (
    query: string,
  ): Promise<{ ids: string[]; first: unknown; last: unknown; more: boolean }> => {
    const sources = [
      source(listOf('a')),
      source(`{"output":${listOf('b', 'c')}}`, 7, 'output'),
      source(listOf('d')),
    ]
    const { data, first_id: first, last_id: last, has_more: more } = JSON.parse(await pageOf(sources, query))
    return { ids: data.map(({ id }: { id: string }) => id), first, last, more }
  }

  test.each([
    ['', ['d', 'c', 'b', 'a'], false],
    ['order=asc', ['a', 'b', 'c', 'd'], false],
    ['order=asc&limit=2', ['a', 'b'], true],
    ['order=asc&limit=2&after=b', ['c', 'd'], false],
    ['limit=3&after=d', ['c', 'b', 'a'], false],
    ['limit=1&after=d', ['c'], true],
    ['limit=1&after=c', ['b'], true],
  ])(
    'the page of a response\'s items for the query "%s" has the requested items',
    async (query, ids, more) => {
      expect(await page(query)).toMatchObject({ ids, more, first: ids[0], last: ids.at(-1) })
    },
  )

  test('the page after the last item of a response is empty', async () => {
    expect(await page('after=a')).toMatchObject({ ids: [], first: null, last: null, more: false })
  })

  test("a page of a response's items has the items byte for byte", async () => {
    expect(await pageOf([source('[ {"id" : "a",  "big":9007199254740993 } , 7]')], '')).toContain(
      '"data":[7,{"id" : "a",  "big":9007199254740993 }]',
    )
  })

  test.each(['limit=0', 'limit=101', 'limit=x', 'limit=1.5', 'order=up', 'after=z'])(
    "a page of a response's items is refused if its query is %s",
    async (query) => {
      await expect(page(query)).rejects.toThrow(/Invalid '/)
    },
  )

  test('a page of items reads only those parts of a large stored response that contain the page', async () => {
    const items = Array.from({ length: 50 }, (_, n) => `i${n}`)
    const large = source(listOf(...items), 100)
    await pageOf([large], 'order=asc&limit=1')
    expect(new Set(large.read)).toEqual(new Set([0]))
  })
})

test("a page of a response's items equals what a JSON parser finds, however the stored text is divided", async () => {
  const item = fc.oneof(
    fc.record({ id: fc.string(), text: fc.string(), nested: fc.jsonValue() }),
    fc.record({ n: fc.jsonValue(), id: fc.jsonValue() }),
    fc.integer(),
    fc.string(),
    fc.constant([['x', ',']]),
  )
  const lists = fc.array(fc.record({ items: fc.array(item, { maxLength: 6 }), isOutput: fc.boolean() }), {
    maxLength: 4,
  })
  await fc.assert(
    fc.asyncProperty(
      lists,
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 1, max: 12 }),
      fc.constantFrom('asc', 'desc'),
      fc.constantFrom(0, 1),
      async (given, cut, limit, order, spaces) => {
        const sources = given.map(({ items, isOutput }) =>
          isOutput
            ? source(
                JSON.stringify({ id: 'r', a: [1, { output: [2] }], output: items, z: {} }, null, spaces),
                cut,
                'output',
              )
            : source(JSON.stringify(items, null, spaces), cut),
        )
        const all = given.flatMap(({ items }) => items as unknown[])
        const inOrder = order === 'asc' ? all : all.toReversed()
        const page = JSON.parse(await pageOf(sources, `order=${order}&limit=${limit}`))
        expect(page.data).toEqual(JSON.parse(JSON.stringify(inOrder.slice(0, limit))))
        expect(page.has_more).toBe(all.length > limit)
        const idOf = (one: unknown): unknown => {
          const id = typeof one === 'object' && one !== null ? (one as { id?: unknown }).id : undefined
          return typeof id === 'string' ? id : null
        }
        expect(page.last_id).toBe(idOf(inOrder.slice(0, limit).at(-1)))
      },
    ),
    { numRuns: lawRuns(1_000) },
  )
})
