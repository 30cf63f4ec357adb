import { describe, expect, test } from 'vitest'
import { scanObject } from '../json/json-scan.ts'
import { inputItems, joinedArrays } from './input-items.ts'
import { itemPage, itemQuery } from './item-page.ts'

const itemsOf = (body: string): string => {
  let count = 0
  return inputItems(scanObject(Buffer.from(body)), (prefix) => `${prefix}_${++count}`)
}

describe('the items of an input', () => {
  test.each([
    [
      '{"input":"a\\"b"}',
      '[{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"a\\"b"}]}]',
    ],
    [
      '{"input":[{"role":"user","content":"a"}]}',
      '[{"role":"user","content":"a","id":"msg_1","type":"message"}]',
    ],
    [
      '{"input":[{"type":"function_call","n":9007199254740993 }]}',
      '[{"type":"function_call","n":9007199254740993,"id":"fc_1"}]',
    ],
    ['{"input":[{ },{"type":"x","id":"y"}]}', '[{"id":"msg_1","type":"message"},{"type":"x","id":"y"}]'],
    ['{"input":null}', '[]'],
    ['{}', '[]'],
  ])('of %s have ids and types', (body, items) => {
    expect(itemsOf(body)).toBe(items)
    expect(() => JSON.parse(items) as unknown).not.toThrow()
  })

  test('of several arrays are one', () => {
    expect(joinedArrays(['[1]', '[ ]', '[]', ' [2,3] '])).toBe('[1,2,3]')
  })
})

describe('a page of items', () => {
  const items = `[${['a', 'b', 'c', 'd'].map((id) => `{"id":"${id}","big":9007199254740993}`).join(',')}]`
  const page = (
    query: string,
  ): { ids: string[]; first: unknown; last: unknown; more: boolean; text: string } => {
    const text = itemPage(items, itemQuery(new URLSearchParams(query))).toString()
    const { data, first_id: first, last_id: last, has_more: more } = JSON.parse(text)
    return { ids: data.map(({ id }: { id: string }) => id), first, last, more, text }
  }

  test.each([
    ['', ['d', 'c', 'b', 'a'], false],
    ['order=asc', ['a', 'b', 'c', 'd'], false],
    ['order=asc&limit=2', ['a', 'b'], true],
    ['order=asc&limit=2&after=b', ['c', 'd'], false],
    ['limit=3&after=d', ['c', 'b', 'a'], false],
    ['limit=1&after=d', ['c'], true],
  ])('asked for by "%s"', (query, ids, more) => {
    expect(page(query)).toMatchObject({ ids, more, first: ids[0], last: ids.at(-1) })
  })

  test('behind the last item is empty', () => {
    expect(page('after=a')).toMatchObject({ ids: [], first: null, last: null, more: false })
  })

  test('has the bytes of its items', () => {
    expect(page('').text).toContain('"big":9007199254740993')
  })

  test.each(['limit=0', 'limit=101', 'limit=x', 'limit=1.5', 'order=up', 'after=z'])(
    'is refused: %s',
    (query) => {
      expect(() => page(query)).toThrow(/Invalid '/)
    },
  )
})
